"""Prediction error, as a page.

Not here: the measurements; see ``validation``.
"""
