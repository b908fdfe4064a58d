"""Which policy is the default: candidates with nothing set beside rivals that are tuned, over many kinds of problem."""
