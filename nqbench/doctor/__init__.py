"""What this system has and lacks for nqbench, and the commands that fix it.

The doctor only reads: it changes no setting and runs none of the commands that it shows. Drivers
and compiled packages, which may hang or crash, are queried in separate processes with a time limit.
"""

from nqbench.doctor.report import FEATURES, Report, examine

__all__ = ["FEATURES", "Report", "examine"]
