"""What changes a bandit, as events: their kinds in one table, their forms on disk, and the one replay of them."""
