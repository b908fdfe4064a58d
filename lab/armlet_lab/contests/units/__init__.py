"""Whether the units of rewards and features matter: levels, lengths, near-ties, and the families old and new."""
