"""What runs experiments: arenas, seeds, verdicts, and the environments of rivals."""
