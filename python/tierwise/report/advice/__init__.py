"""The page of an advice: the decision for who pays, and an explorer of all placements, in one file.

Not here: searching and pricing, which ``advise`` does; scripts and styles: data/templates/advice.
"""

from tierwise.report.advice.advice_html import advice_page
from tierwise.report.advice.advice_survey import AdviceSurvey, survey_advice

__all__ = ["AdviceSurvey", "advice_page", "survey_advice"]
