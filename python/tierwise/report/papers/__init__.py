"""Findings of the papers: what agrees here, and what is predicted for their machines.

Not here: the figures of a study; see ``study``.
"""
