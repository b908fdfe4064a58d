"""What may happen to a bandit while it runs: a log that is told of it, and other settings."""
