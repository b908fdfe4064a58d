"""Dials: every weight of outcomes valued by one log, and the curve of what each would have had."""
