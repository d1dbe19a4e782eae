"""Types that all other folders share: errors, roles, placements, units, formats of figures, statistics.

Not here: anything that only one folder uses.
"""
