"""The tests of loops over any ledger, in a database: changes, refits, models, batches, early rewards, outcomes."""

from __future__ import annotations

from stores import test_batches, test_change, test_early_and_played, test_models, test_refit
from stores.outcomes import test_changes, test_parts

loops = (test_batches, test_change, test_early_and_played, test_models, test_refit)
for module in (*loops, test_changes, test_parts):
    found = {name: value for name, value in vars(module).items() if name.startswith("test_")}
    assert not found.keys() & globals().keys(), "a test of one module would hide that of another"
    globals().update(found)
