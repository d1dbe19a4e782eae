"""The lab: runs databases in studies and rounds of validation, on emulated or real devices; reports on them.

Not here: what records, predicts or advises; that never imports the lab.
"""
