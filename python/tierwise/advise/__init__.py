"""Advice: which role to move first, the best placement within a budget, device wear.

Not here: simulation; advice asks ``predict``.
"""

from tierwise.advise.advice import Advice, advise
from tierwise.advise.endurance import Wear
from tierwise.advise.goal import Goal, parse_budget_usd
from tierwise.advise.moves import Move
from tierwise.advise.search import Option

__all__ = ["Advice", "Goal", "Move", "Option", "Wear", "advise", "parse_budget_usd"]
