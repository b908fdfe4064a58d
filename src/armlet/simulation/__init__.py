"""Policies in environments: one run, many runs, and what they found, kept in a folder."""
