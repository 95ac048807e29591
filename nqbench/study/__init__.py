"""Studies: a YAML file becomes points.

``load_study`` reads and checks the file, ``expand`` makes the points for one device, ``schema``
is the grammar as JSON Schema. All mistakes are ``StudyError`` with file:line.
"""

from nqbench.study.expand import MAX_POINTS, expand
from nqbench.study.load import load_study
from nqbench.study.model import Measure, Study
from nqbench.study.report_items import REPORT_KINDS, ReportItem
from nqbench.study.schema import schema
from nqbench.study.values import duration_s

__all__ = [
    "MAX_POINTS",
    "REPORT_KINDS",
    "Measure",
    "ReportItem",
    "Study",
    "duration_s",
    "expand",
    "load_study",
    "schema",
]
