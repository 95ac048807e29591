"""Exit codes of the commands; 0 is success."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nqbench.measure.events import RunOutcome

EXIT_FAILED: Final = 1
"""A point or a limit failed, or a gate was hit."""
EXIT_WRONG: Final = 2
"""The request or what it names cannot be used."""
EXIT_INTERRUPTED: Final = 130
"""Ended by Ctrl-C or a signal; what was finished is kept."""


def exit_code(outcome: RunOutcome) -> int:
    """The exit code of a command that measured a study.

    A run all of whose points were skipped is no success: each has a good reason, and still there
    is no number.
    """
    if outcome.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_FAILED if outcome.failures or not outcome.counts.get("ok", 0) else 0
