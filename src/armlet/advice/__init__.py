"""How much to explore: p for a problem that is known, guessed, or seen in a pilot, with what the choice costs."""

from armlet.advice.answer import Advice
from armlet.advice.ask import advise
from armlet.advice.pilot import Pilot
from armlet.advice.prior import Prior

__all__ = ["Advice", "Pilot", "Prior", "advise"]
