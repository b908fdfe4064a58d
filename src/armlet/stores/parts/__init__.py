"""Rewards of several parts, of loops with several outcomes: how each is judged, and how a row is learned from them."""
