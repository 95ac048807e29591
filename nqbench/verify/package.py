"""A run as a research object: a folder that is all another machine needs to verify a run, draw it
again and extend it. An RO-Crate 1.3 with the profile Process Run Crate 0.5.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import mimetypes
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from nqbench import vocabulary
from nqbench.analysis.answer import Answer
from nqbench.analysis.data.dataset import Dataset
from nqbench.errors import FolderRefused, StudyError
from nqbench.report.exporters import templates
from nqbench.report.tables.results import results
from nqbench.report.writer import write_report
from nqbench.runs.frame import load
from nqbench.runs.reading import CRATE, MANIFEST, PACKED, RECORDS, SUMS
from nqbench.study.packaged import packaged
from nqbench.study.report_items import ReportItem
from nqbench.system.versions import PACKAGE, __version__, required
from nqbench.workloads import of_study

COLUMNS: Final = "measurements.csv"
LOCK: Final = "requirements.txt"
APPENDIX: Final = "artifact.md"
COPIED: Final = (MANIFEST, RECORDS, PACKED, "README.md")
FORMATS: Final = ("md", "csv", "html", "svg")
UNITS: Final = {
    **{"_s": "s", "_mhz": "MHz", "_c": "Cel", "_mw": "mW", "_mj": "mJ"},
    **{"bytes": "By", "_percent": "%"},
}
"""UCUM units, by the end of a column's name; other numbers are counts."""
BUILT: Final = frozenset({"pycuda"})
"""Packages that pip compiles with CUDA's tools, which only a GPU's machine has."""


def write_package(run: Dataset, out: Path) -> None:
    """Write a verified run as a research object into the new folder ``out``.

    Raises ``FolderRefused`` if it is not new, or cannot be written.
    """
    if out.exists():
        raise FolderRefused(f"{out} is there already; name a new folder for the package")
    report = out / "report"
    try:
        report.mkdir(parents=True)
        for name in COPIED:
            if (file := run.path / name).is_file():
                shutil.copyfile(file, out / name)
        for name, text in study_files(run).items():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_text(text, encoding="utf-8")
        (out / LOCK).write_text(lock(run, write_wheel(out).name), encoding="utf-8")
        write_report(Answer(replace(run, path=Path())), report, FORMATS)
        write_appendix(run, report, FORMATS)
        (out / CRATE).write_text(json.dumps(crate(run, out), indent=1) + "\n", encoding="utf-8")
        sums = [f"{_sha256(file)}  {file.relative_to(out).as_posix()}\n" for file in _files(out)]
        (out / SUMS).write_text("".join(sums), encoding="utf-8")
    except OSError as error:
        raise FolderRefused(f"{out} cannot be written: {error.strerror}") from error


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def study_files(run: Dataset) -> dict[str, str]:
    """The study and the files that its kernel is made of, as the manifest has them, by name."""
    study = run.study
    found = {str(study.get("file") or "study.yaml"): study.get("text")}
    found |= run.manifest.get("sources") or {}
    outside = {name for name in found if Path(name).is_absolute() or ".." in Path(name).parts}
    return {n: str(found[n]) for n in sorted({*found} - outside - {*COPIED}) if found[n]}


def lock(run: Dataset, wheel: str) -> str:
    """The packages of the run by their exact versions, for ``pip install -r``."""
    machine = run.manifest.get("environment") or {}
    recorded = machine.get("packages") or {}
    others = {name: version for name, version in required().items() if name not in recorded}
    lines = [
        f"# In this folder: pip install -r {LOCK}",
        f"./{wheel}",
        f"# When it was measured, with Python {machine.get('python')}:",
        *(f"{'# on a GPU: ' * (n in BUILT)}{n}=={v}" for n, v in sorted(recorded.items())),
        "# When it was packaged:" if others else "",
        *(f"{name}=={version}" for name, version in sorted(others.items())),
    ]
    return "\n".join([*lines, ""])


def write_wheel(folder: Path) -> Path:
    """nqbench as a wheel, from its own files: no index need have this version of it.

    Raises ``StudyError`` where it is not installed.
    """
    try:
        about = distribution("nqbench")
    except PackageNotFoundError:
        raise StudyError("a package holds nqbench, which is not installed here: use pip") from None
    info = f"nqbench-{__version__}.dist-info"
    path = folder / f"nqbench-{__version__}-py3-none-any.whl"
    folders = {"nqbench": PACKAGE}
    folders["nqbench/_data/configs"] = packaged("configs")
    folders["nqbench/_data/experiments"] = packaged("experiments")
    content = {
        f"{place}/{file.relative_to(own).as_posix()}": file.read_bytes()
        for place, own in folders.items()
        for file in _files(own)
        if "__pycache__" not in file.parts
    }
    texts = {name: about.read_text(name) or "" for name in ("METADATA", "entry_points.txt")}
    texts["WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    content |= {f"{info}/{name}": text.encode() for name, text in texts.items()}
    content[f"{info}/RECORD"] = f"{_digests(content)}{info}/RECORD,,\n".encode()
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, data in content.items():  # a date of 1980: the same files give the same bytes
            archive.writestr(ZipInfo(name), data, ZIP_DEFLATED)
    return path


def _digests(content: Mapping[str, bytes]) -> str:
    """The lines of a wheel's list of files."""
    rows = io.StringIO()
    for name, data in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        csv.writer(rows, lineterminator="\n").writerow([name, f"sha256={digest}", len(data)])
    return rows.getvalue()


def write_appendix(run: Dataset, out: Path, formats: Sequence[str]) -> None:
    """The artifact appendix of a paper (the hardware, minutes per step, what to expect), and every
    measurement, in those of these formats that they have."""
    if "csv" in formats:
        load(run.path).assign(run=run.name).to_csv(out / COLUMNS, index=False, lineterminator="\n")
    if "md" in formats:
        names = {-1: "a profiler's launches", 0: "verifying launches"}
        steps = [
            (names.get(number, f"round {number}"), [r for r in run.records if r.round == number])
            for number in sorted({record.round for record in run.records})
        ]
        template = templates().get_template(APPENDIX)
        text = template.render(
            data=run,
            machine=run.manifest.get("environment") or {},
            identity={**run.about_device("facts"), **run.about_device("identity")},
            steps=[*steps, ("all", list(run.records))],
            expected=results(run, ReportItem("table", "results")),
        )
        (out / APPENDIX).write_text(text, encoding="utf-8")


def crate(run: Dataset, folder: Path) -> dict[str, Any]:
    """The metadata of the files in a folder, as JSON-LD."""
    data = run
    found: dict[str, Any] = json.loads(Path(__file__).with_name("crate.json").read_text("utf-8"))
    graph = found["@graph"]
    described = {one["@id"]: one for one in graph}
    files = {file.relative_to(folder).as_posix(): file for file in _files(folder)}
    columns = _columns(run)
    described["./"] |= {
        "name": f"{data.name} on {data.device}",
        "description": str(data.study.get("about") or f"A run of the study {data.name}"),
        "datePublished": data.manifest.get("created"),
        "hasPart": _to(files),
        "variableMeasured": _to(column["@id"] for column in columns),
    }
    described["#run"] |= {
        "name": f"Measured on {data.device}",
        "description": data.command,
        "object": _to(study_files(run)),
        "result": _to(name for name in files if name in (MANIFEST, RECORDS, PACKED)),
        "startTime": data.manifest.get("created"),
    }
    if times := [(record.started, record.wall_s) for record in run.records if record.started]:
        started, wall_s = max(times)
        over = datetime.fromisoformat(started) + timedelta(seconds=wall_s)
        described["#run"]["endTime"] = over.isoformat(timespec="seconds")
    (wheel,) = (name for name in files if name.endswith(".whl"))
    described["#nqbench"] |= dict.fromkeys(("version", "softwareVersion"), __version__)
    described["#nqbench"]["url"] = {"@id": wheel}
    graph += [
        {
            "@id": name,
            "@type": "File",
            "name": name,
            "contentSize": str(file.stat().st_size),
            "encodingFormat": mimetypes.guess_type(name)[0] or "application/octet-stream",
            "sha256": _sha256(file),
        }
        for name, file in files.items()
    ]
    graph += columns
    return found


def _to(names: Iterable[str]) -> object:
    """What points to some entities: the standard wants a single one without a list."""
    found = [{"@id": name} for name in names]
    return found[0] if len(found) == 1 else found


def _columns(run: Dataset) -> list[dict[str, Any]]:
    """Every column of the measurements: its unit, and what it means where that is declared."""
    known = {
        **vocabulary.PROGRAM_COUNTERS,
        **vocabulary.CACHE_COUNTERS,
        **vocabulary.PROFILER_COUNTERS,
        **vocabulary.COUNTERS,
    }
    known |= {f"{name}_s": meaning for name, meaning in vocabulary.PHASES.items()}
    with suppress(StudyError):  # a kernel of a user's own
        known |= {name: one.meaning for name, one in of_study(run.study).factors.items()}
    table = load(run.path)
    numbers = table.select_dtypes("number").columns
    found = []
    for name in table.columns:
        plain = vocabulary.plain_name(name)[0]
        unit = next((unit for end, unit in UNITS.items() if plain.endswith(end)), "1")
        place = "#column-" + re.sub(r"[^\w.-]", "-", name)
        one = {"@id": place, "@type": "PropertyValue", "name": name}
        one |= {"unitText": unit} if name in numbers else {}
        found.append(one | ({"description": known[plain]} if plain in known else {}))
    return found
