"""Advice: what to move first, the best placement for the money, device wear; forecasts verified.

Not here: simulation; advice asks ``predict``.
"""

from tierwise.advise.advice import Advice, AdviceOptions, Caution, advise
from tierwise.advise.costs import Costs, Terms, Wear
from tierwise.advise.day import DayAdvice, LoadAdvice, advise_day
from tierwise.advise.decision import Decision
from tierwise.advise.moves import Move
from tierwise.advise.option import Goal, Option
from tierwise.advise.search import LeftOut

__all__ = [
    "Advice",
    "AdviceOptions",
    "Caution",
    "Costs",
    "DayAdvice",
    "Decision",
    "Goal",
    "LeftOut",
    "LoadAdvice",
    "Move",
    "Option",
    "Terms",
    "Wear",
    "advise",
    "advise_day",
]
