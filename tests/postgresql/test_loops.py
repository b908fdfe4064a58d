"""The tests of loops over any ledger, in a database: changes, refits, models, batches, early rewards."""

from __future__ import annotations

from stores import test_batches, test_change, test_early_and_played, test_models, test_refit

for module in (test_batches, test_change, test_early_and_played, test_models, test_refit):
    found = {name: value for name, value in vars(module).items() if name.startswith("test_")}
    assert not found.keys() & globals().keys(), "a test of one module would hide that of another"
    globals().update(found)
