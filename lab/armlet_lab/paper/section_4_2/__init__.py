"""Section 4.2: how p is chosen, in advance and on the way."""
