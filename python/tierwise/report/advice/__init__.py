"""The page of an advice: the decision for who pays, and an explorer of all placements, in one file.

Not here: searching and pricing, which ``advise`` does; scripts and styles: data/templates/advice.
"""

from tierwise.report.advice.join import Subject, subject
from tierwise.report.advice.page import advice_page

__all__ = ["Subject", "advice_page", "subject"]
