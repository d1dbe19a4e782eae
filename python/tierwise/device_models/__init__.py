"""Device profiles and their simulation on virtual time.

Not here: real devices; see ``probe`` and ``host``.
"""
