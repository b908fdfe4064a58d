"""The open problem of Sections 7 and 8: mostly greedy play against contexts that were made to hurt it."""
