"""Studies, comparisons and rounds of validation as documents and charts.

Not here: documents of recordings, predictions and advice, and what renders any document; see ``report``.
"""
