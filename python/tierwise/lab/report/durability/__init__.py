"""Power cuts of a study: what is lost under each setting, and what it gains.

Not here: the figures, see ``lab.analysis``; the cuts themselves, see ``lab.studies``.
"""
