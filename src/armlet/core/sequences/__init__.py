"""Intervals that may be looked at after every row: means and differences, and the bets behind them."""

from armlet.core.sequences.means import BetaBinomial as BetaBinomial
from armlet.core.sequences.means import DifferenceSequence as DifferenceSequence
from armlet.core.sequences.means import Kind as Kind
from armlet.core.sequences.means import MeanSequence as MeanSequence
from armlet.core.sequences.means import Scores as Scores
from armlet.core.sequences.means import in_range as in_range
