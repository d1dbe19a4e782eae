"""Findings of papers as tables.

Not here: whether our runs agree with them; see ``lab.analysis``.
"""
