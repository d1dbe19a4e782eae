"""Many recordings under one budget: options of each, the best set of moves, and how sure each move is.

Not here: predictions and prices, which ``advise`` makes; the joint replay, which ``predict`` makes.
"""
