"""Turns results, predictions and advice into text, tables, charts and HTML.

Not here: measuring, and names of engines.
"""
