"""The command line: its exit codes, which scripts depend on.

0 all points measured and verified; 1 some points failed; 2 the study or the command line is wrong
(nothing was run); 130 interrupted (what was measured is kept).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nqbench.measure.run_state import RunOutcome

EXIT_FAILED: Final = 1
"""A point or a limit failed, or a gate was hit."""
EXIT_WRONG: Final = 2
"""The command line is wrong, or what it names cannot be used; nothing was run."""
EXIT_INTERRUPTED: Final = 130
"""Ended by Ctrl-C or a signal; what was finished is kept."""


def exit_code(outcome: RunOutcome) -> int:
    """The exit code of a command that measured a study.

    A run whose points were all skipped has failed: it has reasons, but no result.
    """
    if outcome.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_FAILED if outcome.failures or not outcome.measured else 0
