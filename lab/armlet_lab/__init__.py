"""The laboratory of Armlet: the paper's experiments, contests, checks of what Armlet promises, and more policies."""
