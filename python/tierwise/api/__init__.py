"""API for notebooks and scripts: recordings, devices and studies, with answers shown as tables.

Not here: logic that the command line would miss.
"""
