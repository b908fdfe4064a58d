"""One module per library: how its users would make a decision and learn from the reward."""
