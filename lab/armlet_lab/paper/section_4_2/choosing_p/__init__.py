"""p found while Algorithm 1 runs."""
