"""Kills processes that decide and reward in a store, and compares what is left with what was answered."""
