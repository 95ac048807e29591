"""nqbench's version and folder, and the versions of installed packages.

A package may be on the import path without metadata, as nqbench itself is in a source folder. Its
version is then unknown, which is not an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from packaging.requirements import Requirement

__version__ = "0.1.0"
PACKAGE: Final = Path(__file__).resolve().parents[1]
"""The folder of nqbench itself."""


def installed(name: str) -> str | None:
    """The version of the package that pip calls ``name``, or ``None`` if it is unknown."""
    from importlib.metadata import PackageNotFoundError, version  # a third of the start-up time

    try:
        return version(name) or None  # damaged metadata may lack it
    except (PackageNotFoundError, KeyError):
        return None


def needs(package: str) -> list[Requirement]:
    """What an installed package requires on this machine, without extras.

    Raises ``importlib.metadata.PackageNotFoundError``.
    """
    from importlib.metadata import requires

    from packaging.requirements import Requirement

    found = map(Requirement, requires(package) or ())
    return [one for one in found if not one.marker or one.marker.evaluate({"extra": ""})]


def required() -> dict[str, str]:
    """The installed packages that nqbench requires, directly or not, with their versions."""
    from packaging.utils import canonicalize_name

    found: dict[str, str] = {}
    wanted = ["nqbench"]
    while wanted:
        name = canonicalize_name(wanted.pop())
        if name not in found and (version := installed(name)):
            found[name] = version
            wanted += [one.name for one in needs(name)]
    found.pop("nqbench", None)
    return found
