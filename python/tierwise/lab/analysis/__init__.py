"""Computes from results: figures with intervals, what to move first, and the sentences that say so. Pure.

Not here: documents and charts; see ``lab.report``.
"""
