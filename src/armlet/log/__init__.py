"""What happened: the log of a bandit, written, read, replayed and audited, and tables of other origin."""
