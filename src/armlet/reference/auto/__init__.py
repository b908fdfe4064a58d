"""What p = "auto" foresees, in numpy: from explored rows to the p that loses least."""
