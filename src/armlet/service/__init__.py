"""Decisions over HTTP: routes, keys, limits and pages around the loops of a store; no bandit logic."""
