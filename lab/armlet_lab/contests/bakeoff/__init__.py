"""The contextual bandit bake-off on real tables: our policies beside Vowpal Wabbit."""
