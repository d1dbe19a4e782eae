"""Types that all other folders share: errors, roles, placements, units, statistics.

Not here: anything that only one folder uses.
"""
