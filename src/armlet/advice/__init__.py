"""How much to explore: p for a problem that is known, guessed, or seen in a pilot, with what the choice costs."""

from armlet.advice.ask import Advice, advise
from armlet.advice.pilot import Pilot
from armlet.advice.problem import Prior

__all__ = ["Advice", "Pilot", "Prior", "advise"]
