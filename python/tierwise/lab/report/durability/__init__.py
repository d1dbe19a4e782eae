"""Power cuts of a study: what is lost under each setting, and what it gains.

Not here: the cuts themselves; see ``studies.runner``.
"""
