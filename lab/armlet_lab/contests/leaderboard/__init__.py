"""Every policy on the same problems: regret, time and memory."""
