"""Whether intervals of evaluations cover as often as they say: environments, sequences, own values, coefficients."""
