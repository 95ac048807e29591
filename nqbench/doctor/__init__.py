"""What this system has and lacks for nqbench, and the command that fixes each lack.

Looks only: no setting is changed and no command that is shown is carried out. Whatever may hang or
crash (drivers, compiled packages) is asked in a process of its own, with a time limit.
"""

from nqbench.doctor.examine import examine
from nqbench.doctor.report import FEATURES, Report, Row, State

__all__ = ["FEATURES", "Report", "Row", "State", "examine"]
