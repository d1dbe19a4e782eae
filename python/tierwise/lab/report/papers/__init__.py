"""Findings of the papers: agreement with our runs, and predictions for the papers' machines.

Not here: the figures of a study; see ``study``.
"""
