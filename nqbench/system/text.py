"""Text that every file and terminal can take."""

from __future__ import annotations

import os
from pathlib import Path


def printable(name: str | Path) -> str:
    r"""A path or command-line word as UTF-8 text: bytes that are not UTF-8 are spelt ``\xe9``.

    Such file names exist on old disks. Python keeps their bytes as lone surrogates, which cannot be
    written to a UTF-8 file.
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")
