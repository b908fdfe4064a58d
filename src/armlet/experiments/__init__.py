"""Experiments: settings, a run, and what it showed; one file each."""
