"""Bandits whose arms have features: one model over the pair of a context x and an action z.

Actions are the rows of a table that may change at every decision. `ActionBandit` is what users hold; `ActionTable`,
`ActionDecision` and the policies are its nouns; the sums and what is solved from them are the kernel's `PairModel`.
"""
