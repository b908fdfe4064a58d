"""Whether intervals of evaluations cover as often as they say: eight worlds, sequences, own values, coefficients."""
