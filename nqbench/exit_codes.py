"""Exit codes of the commands; 0 is success."""

from __future__ import annotations

from typing import Final

EXIT_FAILED: Final = 1
"""A point or a limit failed, or a gate was hit."""
EXIT_WRONG: Final = 2
"""The request or what it names cannot be used."""
EXIT_INTERRUPTED: Final = 130
"""Ended by Ctrl-C or a signal; what was finished is kept."""
