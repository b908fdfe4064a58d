"""What comes in from outside: labels of arms, contexts of any kind, columns of numbers, tables. Checked here, once."""
