"""Two sets of results side by side.

Not here: placements of one study; see ``study``.
"""
