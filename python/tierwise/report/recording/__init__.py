"""Answers from recordings: profiles, predictions, advice.

Not here: the prediction itself; see ``predict``.
"""
