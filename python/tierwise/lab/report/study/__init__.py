"""The answer of a study as a document: tables and the page.

Not here: what is in the answer; see ``lab.analysis``.
"""
