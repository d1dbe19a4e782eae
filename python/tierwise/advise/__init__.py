"""Advice from a recording: what to move first, what is best for the money, what wears out when."""

from tierwise.advise.advice import Advice, advise
from tierwise.advise.endurance import Wear
from tierwise.advise.goal import Goal
from tierwise.advise.moves import Move
from tierwise.advise.search import Option

__all__ = ["Advice", "Goal", "Move", "Option", "Wear", "advise"]
