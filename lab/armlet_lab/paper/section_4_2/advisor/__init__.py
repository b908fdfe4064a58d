"""p from what is known before: a law of problems, or a pilot."""
