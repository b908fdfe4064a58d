"""A log compacted: Parquet with one row a decision, and beside it the events that have no row. Needs pyarrow."""
