"""Advice: what to move first, the best placement for the money, device wear; forecasts verified.

Not here: simulation; advice asks ``predict``.
"""

from tierwise.advise.advice import Advice, AdviceOptions, Caution, advise
from tierwise.advise.costs import PaymentTerms, PlacementCosts
from tierwise.advise.day_advice import AdviceForLoad, DayAdvice, advise_day
from tierwise.advise.decision import Decision
from tierwise.advise.moves import Move
from tierwise.advise.priced_placement import Goal, PricedPlacement
from tierwise.advise.search import UnusedDevice
from tierwise.advise.wear import DeviceWear

__all__ = [
    "Advice",
    "AdviceForLoad",
    "AdviceOptions",
    "Caution",
    "DayAdvice",
    "Decision",
    "DeviceWear",
    "Goal",
    "Move",
    "PaymentTerms",
    "PlacementCosts",
    "PricedPlacement",
    "UnusedDevice",
    "advise",
    "advise_day",
]
