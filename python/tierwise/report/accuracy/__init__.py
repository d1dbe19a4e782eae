"""How far predictions were from measurements, as a page.

Not here: the measurements; see ``validation``.
"""
