"""The answer of a study: figures, sentences, tables, the page.

Not here: how a document looks; see ``render``.
"""
