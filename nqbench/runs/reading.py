"""The files of a run folder, as they are read: whatever is damaged in them is said, never guessed.

``manifest.json`` says what was to be measured, where, and with what; ``records.jsonl`` holds one
:class:`~nqbench.record.Record` per line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nqbench.errors import FolderRefused, StoreError
from nqbench.record import Record
from nqbench.record_check import planned_fault

MANIFEST_VERSION: Final = 1
MANIFEST: Final = "manifest.json"
RECORDS: Final = "records.jsonl"
TORN: Final = "records.torn"


@dataclass(frozen=True, slots=True)
class RecordFile:
    """The readable records of a run, and the torn last line if there is one."""

    records: tuple[Record, ...]
    torn: bytes = b""

    def message(self) -> str:
        """What was kept, in one sentence; empty if nothing is torn."""
        if not self.torn:
            return ""
        return (
            f"the last line of {RECORDS} is torn (a run was killed while writing it):"
            f" {len(self.records)} complete records are kept, that block is measured again"
        )


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a run folder. Raises ``StoreError``; ``FolderRefused`` without one."""
    file = path / MANIFEST
    try:
        data = json.loads(file.read_bytes(), parse_constant=_no_number)
    except (FileNotFoundError, NotADirectoryError):
        raise FolderRefused(
            f"{path} is not a run folder: it has no {MANIFEST};"
            " give the folder that `nqbench run` wrote"
        ) from None
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{file} is not JSON ({error}); {_mend(path)}") from None
    version = data.get("version") if isinstance(data, dict) else None
    if not isinstance(version, int):
        raise StoreError(f"{file} is not a manifest: it has no version number; {_mend(path)}")
    if version > MANIFEST_VERSION:
        raise StoreError(
            f"{file} has version {version}, newer than this nqbench reads ({MANIFEST_VERSION});"
            " nothing was changed: update nqbench, or give another folder with --out"
        )
    lacking = _lacking(data)
    if lacking:
        raise StoreError(f"{file} is not a whole manifest: it lacks {lacking}; {_mend(path)}")
    return dict(data)


def _no_number(word: str) -> None:
    """A manifest holds settings and facts; what is not a number there is no setting."""
    raise ValueError(f"it holds {word}, which is no number")


def _mend(path: Path) -> str:
    """What can be done about a damaged manifest, and what is safe meanwhile."""
    try:
        kept = (path / RECORDS).read_bytes().count(b"\n")
    except OSError:
        kept = 0
    return (
        f"its {kept} records are untouched: put a good copy of {MANIFEST} back, or delete it and"
        " run the study again, which goes on from those records that still apply"
    )


def _lacking(data: Mapping[str, Any]) -> str:
    """The first part without which a manifest is of no use; empty if all are there."""
    for section, name in (("study", "name"), ("device", "kind"), ("device", "facts")):
        held = data.get(section)
        if not isinstance(held, dict) or name not in held:
            return f"{section}.{name}"
    command = data.get("command") or []
    if not isinstance(command, str | list):
        return "a valid command"
    facts, points = data["device"]["facts"], data.get("points")
    if not isinstance(facts, dict) or "name" not in facts:
        return "device.facts.name"
    capability = facts.get("compute_capability", [])
    if not isinstance(capability, list) or not all(isinstance(part, int) for part in capability):
        return "a valid device.facts.compute_capability"
    if not isinstance(data["device"].get("identity", {}), dict):
        return "a valid device.identity"
    if not _are_sweeps(data["study"].get("sweeps", [])):
        return "valid study.sweeps"
    if not isinstance(points, list):
        return "points"
    for number, point in enumerate(points):
        fault = planned_fault(point)
        if fault:
            return f"a valid points[{number}] (it {fault})"
    return ""


def _are_sweeps(sweeps: object) -> bool:
    """Whether these are sweeps as a study's plain form has them, as far as reports read them."""
    return isinstance(sweeps, list) and all(
        isinstance(sweep, dict)
        and all(isinstance(sweep.get(axes) or {}, dict) for axes in ("matrix", "zip"))
        for sweep in sweeps
    )


def incomplete(path: Path) -> str:
    """What a reader should know of a run whose records end too early; empty if nothing is torn.

    Looks at the end of the file alone. Whatever is no run folder is somebody else's to complain of.
    """
    if not (path / MANIFEST).is_file():
        return ""
    again = "`nqbench run` with its study measures what is missing"
    try:
        with (path / RECORDS).open("rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return f"{path / RECORDS} is empty: no block is kept there; {again}"
            file.seek(-1, os.SEEK_END)
            whole = file.read(1) == b"\n"
    except FileNotFoundError:
        return f"{path} has no {RECORDS}: no block is kept there; {again}"
    except OSError as error:
        raise StoreError(f"{path / RECORDS} cannot be read: {error.strerror}") from error
    if whole:
        return ""
    return (
        f"the last line of {path / RECORDS} is torn and left out, all before it is shown; {again}"
    )


def read_records(path: Path) -> RecordFile:
    """The records of a run folder in the order of the file. Raises ``StoreError``.

    A last line without its newline is what a killed runner leaves: it is returned as ``torn``.
    A damaged line anywhere else is an error, since silently losing a block would bias a result.
    """
    file = path / RECORDS
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return RecordFile(())
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error.strerror}") from error
    *lines, torn = content.split(b"\n")
    return RecordFile(
        tuple(_parse(file, number, line) for number, line in enumerate(lines, 1) if line), torn
    )


def _parse(file: Path, number: int, line: bytes) -> Record:
    try:
        return Record.from_json(json.loads(line))
    except StoreError as error:
        raise StoreError(f"{file}:{number}: {error}; nothing was changed") from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(
            f"{file}:{number}: not a record ({error}); nothing was changed: move that line out of"
            " the file to go on with the others, its block is then measured again"
        ) from None


def current(manifest: Mapping[str, Any], records: Iterable[Record]) -> list[Record]:
    """The newest record of each measurement of the points that the manifest plans."""
    planned = {point["key"] for point in manifest.get("points", ())}
    return [record for (key, _), record in newest(records).items() if key in planned]


def newest(records: Iterable[Record]) -> dict[tuple[str, int], Record]:
    """The last record of each (key, round), in file order: later ones supersede earlier ones."""
    latest: dict[tuple[str, int], Record] = {}
    for record in records:
        latest[record.key, record.round] = record
    return latest
