"""Who takes part in a loop: a live policy, a control, shadows, and a learner while the live one is frozen."""
