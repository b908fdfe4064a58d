"""Bets on the propensities of decisions, of which alarms are made."""

from __future__ import annotations

from armlet.inference.betting import PropensityBets
from armlet.stores.tally.catalogue import rank_of
from armlet.stores.tally.folds import Fold, Seen


class Bets(PropensityBets, Fold):
    """Bets that every arm could be explored with the probability that rows say, as `armlet.evaluate` does."""

    __slots__ = ()

    key = "bets"
    kinds = ("decide",)
    required = True

    def see(self, seen: Seen) -> None:
        """Bet on a decision; on actions by rank, since most labels are drawn once or twice."""
        fields = seen.fields
        rate = fields["exploration_rate"]
        if rate is not None:
            self._bet_on_exploring(seen, rate)
        elif "actions" in fields:
            ranked = rank_of(fields.get("support") or (), fields["arm"])
            if ranked is not None:
                self.draw(ranked[0], fields["propensity"], ranked[1])
        elif fields["propensity"] < 1.0:
            self.draw(seen.place, fields["propensity"], 1.0 / max(2, seen.n_arms))

    def _bet_on_exploring(self, seen: Seen, rate: float) -> None:
        fields, explored = seen.fields, seen.explored
        smallest, chance = fields["min_exploration_probability"], fields["exploration_propensity"]
        if smallest and rate > 0.0 and (chance or not explored):  # unknown where a control played
            if explored and chance:
                self.draw(seen.place, chance, smallest)
            if rate < 1.0:
                self.toss(rate, explored)
