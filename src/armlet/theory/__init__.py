"""The paper's theory as numbers: the constants of a problem, the p that Theorem 2 asks for, and its bound."""
