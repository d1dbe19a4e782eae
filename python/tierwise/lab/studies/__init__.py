"""Studies: the format, the plan of runs, and the runner that measures them.

Not here: text and charts; see ``report``.
"""

from tierwise.lab.studies.study import FILE_ENGINE, Study, load_study, parse_study, study_names

__all__ = ["FILE_ENGINE", "Study", "load_study", "parse_study", "study_names"]
