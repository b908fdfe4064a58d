"""Contracts that ship: run them over a policy of your own."""
