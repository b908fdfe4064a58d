"""Columns of text, of categories and of numbers as the numbers of a context: one way for all who read rows."""
