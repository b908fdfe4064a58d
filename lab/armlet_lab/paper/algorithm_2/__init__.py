"""Algorithm 2, Contextual UCB: what it remembers, costs and regrets."""
