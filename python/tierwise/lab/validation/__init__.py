"""Validates predictions: measures in slots what was predicted, and learns the model's error.

Not here: predicting; see ``predict``.
"""
