"""Contests of policies: one machine, and a file of settings for each."""
