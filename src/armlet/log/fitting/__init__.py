"""Learning from Parquet of any size: found in pieces, read in batches, summed anywhere, added in order."""
