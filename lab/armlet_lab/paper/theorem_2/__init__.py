"""Theorem 2: the regret of Algorithm 1 at the p that it asks for."""
