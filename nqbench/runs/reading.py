"""Where runs live, and reading the files of a run folder: damage is reported, never guessed around.

Runs of the project live in ``results/reference/DEVICE/STUDY``, a user's in ``results/local``; the
report of a run goes to the same place under ``plots``.

``manifest.json`` says what was to be measured, where, and with what; ``records.jsonl`` holds one
:class:`~nqbench.record.Record` per line. A run that is kept may have ``records.jsonl.gz`` instead,
and ``SHA256SUMS`` (as ``sha256sum`` writes it), which is checked.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Required

from annotated_types import Ge, Le

from nqbench.errors import DamageWarning, FolderRefused, NewerRecord, StoreError
from nqbench.facts import DeviceFacts
from nqbench.record import (
    LEVELS,
    MOST,
    Json,
    Number,
    Record,
    Rows,
    Scalar,
    fault_of,
    form,
    not_a,
    size_fault,
)
from nqbench.system.files import contents_of, harmless, text
from nqbench.system.suggest import shown

CHECKSUM: Final = b',"crc32":"%08x"}\n'
MANIFEST_VERSION: Final = 1
MAX_BYTES: Final = 1 << 30
"""Records that are unpacked: 100 times as much as any run of the project has."""
MANIFEST: Final = "manifest.json"
RECORDS: Final = "records.jsonl"
PACKED: Final = "records.jsonl.gz"
SUMS: Final = "SHA256SUMS"
CRATE: Final = "ro-crate-metadata.json"
"""What describes a packaged run, and the sums, hold until the run goes on."""
TORN: Final = "records.torn"
RESULTS: Final = Path("results")
PLOTS: Final = Path("plots")
KINDS: Final = ("reference", "local")
"""Runs that are part of the project, and a user's own."""


Positive = Annotated[int, Ge(1), Le(MOST)]
Amount = Annotated[int, Ge(0), Le(MOST)]
Some = dict[str, Any]
_SIZES: Final = {
    one.name: Amount if one.default == 0 else Positive
    for one in fields(DeviceFacts)
    if one.type == "int"
}
_DEVICE: Final = form(
    kind=Required[str],
    facts=Required[form(name=Required[str], compute_capability=list[Amount], **_SIZES)],
    identity=Some,
    host=form(cores=Amount, logical_cores=Amount) | None,
)
_KERNEL: Final = form(
    **dict.fromkeys(("arguments", "variables", "values", "check"), Some),
    steps=list[Some],
    factors=dict[str, list[Any] | Some],
    metrics=Json[str, form(value=Required[Scalar]) | Scalar] | None,
)
_STUDY: Final = form(
    name=Required[str],
    sweeps=Rows[form(matrix=Some | None, zip=Some | None)],
    kernel=_KERNEL | None,
)
_PLANNED: Final = form(
    **dict.fromkeys(("key", "sweep"), Required[str]),
    **dict.fromkeys(("study", "workload", "label"), str),
    system=str | None,
    factors=Required[LEVELS],
    on=Amount,
    program=form(device=Required[str]) | None,
)
_PROTOCOL: Final = form(samples=Positive, max_samples=Positive, target=Number, rounds=Amount)
_MANIFEST: Final = form(
    study=Required[_STUDY],
    device=Required[_DEVICE],
    points=Required[Rows[_PLANNED]],
    created=str,
    command=str | list[Any] | None,
    protocol=_PROTOCOL | None,
    environment=Some | None,
    devices=Rows[_DEVICE],
)
"""What a manifest must say, and of what forms the parts are that are read."""


@dataclass(frozen=True, slots=True)
class RecordFile:
    """The readable records of a run, the torn last line if there is one, and the damaged lines by
    their numbers, with ``damage``: what is wrong with them, in one sentence."""

    records: tuple[Record, ...]
    torn: bytes = b""
    damaged: Mapping[int, bytes] = field(default_factory=dict)
    damage: str = ""

    def message(self) -> str:
        """What was kept, in one sentence; empty if nothing is torn."""
        if not self.torn:
            return ""
        return (
            f"the last line of {RECORDS} is torn (a run was killed while writing it):"
            f" {len(self.records)} complete records are kept, that measurement is repeated"
        )


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a run folder. Raises ``StoreError``; ``FolderRefused`` without one."""
    file = path / MANIFEST
    try:
        content = contents_of(file)
        _check_sum(file, content)
        data = harmless(MANIFESTS.decode(content.decode()))
    except (FileNotFoundError, NotADirectoryError):
        what = f"is not a run folder: it has no {MANIFEST}" if path.exists() else "does not exist"
        raise FolderRefused(f"{path} {what}; give the folder that `nqbench run` wrote") from None
    except OSError as error:
        kind = FolderRefused if error.errno == errno.ENAMETOOLONG else StoreError
        raise kind(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{file} is not JSON ({error}); {_REMEDY}") from None
    version = data.get("version") if isinstance(data, dict) else None
    if not isinstance(version, int):
        raise StoreError(f"{file} is not a manifest: it has no version number; {_REMEDY}")
    if version > MANIFEST_VERSION:
        raise StoreError(
            f"{file} has version {version}, newer than this nqbench reads ({MANIFEST_VERSION});"
            " nothing was changed: update nqbench, or give another folder with --out"
        )
    if fault := fault_of(_MANIFEST, data) or _value_fault(data):
        raise StoreError(f"{file} is not a complete manifest: it {fault}; {_REMEDY}")
    return dict(data)


def _value_fault(manifest: Mapping[str, Any]) -> str:
    """What a form does not say: the sizes of points, and when it was made."""
    sizes = (size_fault(("points", i), point) for i, point in enumerate(manifest["points"]))
    if fault := next(filter(None, sizes), ""):
        return fault
    created = manifest.get("created")
    with suppress(ValueError):
        if created is None or datetime.fromisoformat(created).tzinfo:
            return ""
    return not_a(("created",), created, "should be a date and time with its zone")


def _number(word: str) -> float:
    """A number of a manifest: of its settings and facts none is infinite or undefined."""
    number = int(word) if word.strip("-").isdigit() else float(word)
    if not -MOST <= number <= MOST:
        raise ValueError(f"it holds {shown(word)}, which is no number up to 1e100")
    return number


def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. Raises ``ValueError`` if it has a key twice: readers would differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"it has the key {shown(key)} twice")
    return found


MANIFESTS: Final = json.JSONDecoder(
    parse_constant=_number, parse_int=_number, parse_float=_number, object_pairs_hook=once
)
LINES: Final = json.JSONDecoder()


def read_records(path: Path) -> RecordFile:
    """The records of a run folder in the order of the file. Raises ``StoreError``.

    A last line without its newline is what a killed runner leaves: it is returned as ``torn``.
    That, a damaged line anywhere else and an empty file are told with a ``DamageWarning``, since
    silently losing a record would bias a result.
    """
    found, file = look_through(path), path / RECORDS
    lost = ""
    if found.torn:
        lost = f"the last line of {file} is torn and left out, all before it is shown"
    elif not (found.records or found.damaged):
        lost = f"{file} is empty or missing: no measurement is kept there"
    told = f"{lost}; `nqbench run` with its study measures what is missing"
    for sentence in filter(None, (found.damage, lost and told)):
        warnings.warn(sentence, DamageWarning, stacklevel=2)
    return found


def look_through(path: Path) -> RecordFile:
    """As :func:`read_records`, for a caller that tells about damage itself."""
    file = path / RECORDS
    *lines, torn = record_bytes(path).split(b"\n")
    records: list[Record] = []
    damaged: dict[int, bytes] = {}
    first = ""
    for number, line in enumerate(lines, 1):
        try:
            records += [_parse(line)] if line else []
        except NewerRecord as error:
            raise StoreError(f"{file}:{number}: {error}; nothing was changed") from None
        except (StoreError, ValueError, RecursionError) as error:
            damaged[number] = line
            first = first or f"{file}:{number}: {error}"
    more = f"; so are {len(damaged) - 1} more lines" if len(damaged) > 1 else ""
    left_out = f"{first}: that line is left out{more}; `nqbench run` with its study measures again"
    return RecordFile(tuple(records), torn, damaged, left_out if first else "")


def record_bytes(path: Path) -> bytes:
    """The records of a run folder as written, unpacked; empty if it has none.

    Raises ``StoreError`` for a packed file that is damaged or is not the one in ``SHA256SUMS``.
    """
    for name in (RECORDS, PACKED):
        file = path / name
        try:
            content = contents_of(file)
            _check_sum(file, content)
            if name == RECORDS:
                return content
            with gzip.open(io.BytesIO(content)) as packed:
                unpacked = packed.read(MAX_BYTES + 1)
            if len(unpacked) <= MAX_BYTES:
                return unpacked
            raise StoreError(f"{file} holds more than {MAX_BYTES >> 30} GiB; {_COPY_AGAIN}")
        except FileNotFoundError:
            continue
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise StoreError(f"{file} is damaged ({error}); {_COPY_AGAIN}") from None
        except OSError as error:
            raise StoreError(f"{file} cannot be read: {error.strerror}") from error
    return b""


_REMEDY: Final = (
    f"the records are untouched: put a good copy of {MANIFEST} back, or delete it and run the study"
    " again, which resumes from those records that still apply"
)
_COPY_AGAIN: Final = "copy the run folder again from where it came from"


def sums_of(folder: Path) -> dict[str, str] | None:
    """The SHA-256 digests of a folder's files by their names; ``None`` where it has none."""
    if not (folder / SUMS).is_file():
        return None
    lines = text(folder / SUMS).splitlines()
    return {name.lstrip(" *"): digest for digest, _, name in (x.partition(" ") for x in lines)}


def _check_sum(file: Path, content: bytes) -> None:
    known = sums_of(file.parent)
    if known is not None and known.get(file.name) != hashlib.sha256(content).hexdigest():
        raise StoreError(f"{file} is not the file that {SUMS} names; {_COPY_AGAIN}")


def line_of(record: Record) -> bytes:
    """A record as a line of the file. Its last field is a checksum of all before."""
    data = json.dumps(record.as_json(), separators=(",", ":"), ensure_ascii=False)
    content = data.encode(errors="surrogatepass").removesuffix(b"}")
    return content + CHECKSUM % zlib.crc32(content)


def _parse(line: bytes) -> Record:
    """The record of a line; early ones have no checksum. Raises ``StoreError``, ``ValueError``."""
    content = line
    if (at := line.rfind(CHECKSUM[:10])) >= 0:
        content = line[:at]
        if line != (content + CHECKSUM % zlib.crc32(content)).rstrip():
            raise ValueError("the line is not as it was written: its checksum differs")
        content += b"}"
    try:
        data = LINES.decode(content.decode(errors="surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    if not isinstance(data, dict):
        raise ValueError("not a record (not a JSON object)")
    # Only an escape or a letter beyond ASCII can stand for a control character.
    return Record.from_json(data if content.isascii() and b"\\" not in content else harmless(data))


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


# Where runs live.


def local_folder(study: str, spec: str) -> Path:
    """Where a user's run of a study on a device goes: ``results/local/DEVICE/STUDY``."""
    return RESULTS / "local" / re.sub(r"[^\w.-]+", "-", spec) / study


def recorded_runs(study: str, kind: str) -> list[Path]:
    """Every run of a study under ``results/KIND/DEVICE``, in order of the devices' names."""
    return sorted(manifest.parent for manifest in (RESULTS / kind).glob(f"*/{study}/{MANIFEST}"))


def default_out(run: Path) -> Path:
    """Where the report of a run goes.

    ``results/local/DEVICE/STUDY`` -> ``plots/local/DEVICE/STUDY``, the same under
    ``results/reference``; any other run folder -> ``RUN/report``.
    """
    run = Path(run)
    for path in (run, run.resolve()):
        parts = path.parts
        for i in range(len(parts) - 2, -1, -1):
            if parts[i] == "results" and parts[i + 1] in {"local", "reference"}:
                return Path(*parts[:i], "plots", *parts[i + 1 :])
    return run / "report"
