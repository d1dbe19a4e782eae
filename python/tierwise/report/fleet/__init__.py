"""The advice for a fleet as a document and as a page.

Not here: options, prices and the best set, which ``fleet`` makes.
"""
