"""A packaged run: complete, described as the standard wants, and a run folder like any other."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pandas as pd
import pytest

from nqbench.runs.reading import CRATE, RECORDS, SUMS
from nqbench.system.versions import required
from tests.cli.call import call
from tests.toys import FAKE
from tests.verify.test_checks import STUDY, whole

__all__ = ["whole"]
VALIDATOR = shutil.which("rocrate-validator")
"""Of the package roc-validator, which wants versions of other packages; CI installs it apart."""


@pytest.fixture(scope="module")
def package(whole: Path) -> Path:
    """The packaged run, away from its study."""
    done = call("verify", whole, "--package", whole.parent / "package")
    assert done.code == 0, done.said
    return whole.parent / "package"


@pytest.fixture(scope="module")
def graph(package: Path) -> dict[str, dict[str, Any]]:
    """What the metadata describe, by identifier."""
    described = json.loads((package / CRATE).read_text())
    assert described["@context"] == "https://w3id.org/ro/crate/1.3/context"
    return {one["@id"]: one for one in described["@graph"]}


def test_it_is_verified_with_all_that_it_holds(package: Path) -> None:
    done = call("verify", package, "--json")
    (found,) = json.loads(done.out)
    assert found["holds"], done.out
    assert found["checks"][0]["not_derived"] == []  # no file without a checksum


def test_files_and_columns_are_described(package: Path, graph: dict[str, dict[str, Any]]) -> None:
    files = {f.relative_to(package).as_posix() for f in package.rglob("*") if f.is_file()}
    parts = {one["@id"] for one in graph["./"]["hasPart"]}
    assert parts == files - {SUMS, CRATE}
    sums = (package / SUMS).read_text().splitlines()
    assert all(f"{graph[name]['sha256']}  {name}" in sums for name in parts)
    columns = {one["name"]: one for one in graph.values() if one["@type"] == "PropertyValue"}
    table = pd.read_csv(package / "report" / "measurements.csv")
    assert list(columns) == list(table.columns)
    assert {columns[name].get("unitText") for name in ("value_s", "kernel_s")} == {"s"}
    assert columns["shared_bytes"]["unitText"] == "By"
    assert "unitText" not in columns["status"]
    assert {one["@id"] for one in graph["#run"]["result"]} == {"manifest.json", RECORDS}
    assert graph["#run"]["startTime"] <= graph["#run"]["endTime"]


def test_whatever_is_referred_to_is_described(graph: dict[str, dict[str, Any]]) -> None:
    text = json.dumps([*graph.values()])
    found = {one["@id"] for one in graph.values()}
    referred = json.JSONDecoder(object_hook=lambda o: (o["@id"],) if len(o) == 1 else o)
    named = {
        value[0]
        for one in referred.decode(text)
        for values in one.values()
        for value in (values if isinstance(values, list) else [values])
        if isinstance(value, tuple)
    }
    assert named - found == {"https://w3id.org/ro/crate/1.3"}


@pytest.mark.skipif(not VALIDATOR, reason="needs the command rocrate-validator and a network")
@pytest.mark.parametrize("profile", ["ro-crate-1.3", "process-run-crate-0.5"])
def test_the_standard_s_own_validator_takes_it(package: Path, profile: str) -> None:
    alone = ["--disable-profile-inheritance"] if profile.startswith("process") else []
    words = [str(VALIDATOR), "-y", "validate", "--no-paging", "-p", profile, *alone, str(package)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    if done.returncode and "URLError" in said:
        pytest.skip("the validator reads the standard's context from a network, and has none")
    assert done.returncode == 0, said


def test_the_lock_has_every_package_and_the_wheel_all_of_nqbench(package: Path) -> None:
    lines = (package / "requirements.txt").read_text().splitlines()
    locked = dict(line.split("==") for line in lines if "==" in line and line[0] != "#")
    assert required().items() <= locked.items()
    assert {"numpy", "matplotlib", "numba", "packaging"} <= locked.keys()
    (wheel,) = package.glob("*.whl")
    assert f"./{wheel.name}" in lines
    names = ZipFile(wheel).namelist()
    for name in ("nqbench/__main__.py", "nqbench/_data/configs/quick.yaml", "nqbench/py.typed"):
        assert name in names
    assert any(name.endswith("nqueens.cu") for name in names)
    assert not any("__pycache__" in name for name in names)


def test_it_goes_on_as_a_run(package: Path, tmp_path: Path) -> None:
    """What it was described as, it is no longer: sums and metadata go."""
    copy = Path(shutil.copytree(package, tmp_path / "copy"))
    assert (copy / "study.yaml").read_text() == STUDY
    (copy / "study.yaml").write_text(STUDY.replace("n: [6, 7]", "n: [6, 7, 8]"))
    done = call("run", "study.yaml", "-d", FAKE, "--out", ".", "--no-report", cwd=copy)
    assert done.code == 0, done.said
    assert "32 measurements are already finished" in done.said
    assert not (copy / SUMS).exists()
    assert not (copy / CRATE).exists()


KERNEL = Path(__file__).with_name("own.yaml").read_text(encoding="utf-8")


def test_an_own_kernel_s_files_travel(tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "parts").mkdir(parents=True)
    texts = {
        "k.cu": '#include "nine.cuh"\n__device__ int nine();\n'
        "__global__ void k(int *out) { out[threadIdx.x] = nine(); }\n",
        "parts/more.cu": "__device__ int nine() { return NINE; }\n",
        "nine.cuh": "#define NINE 9\n",
        "study.yaml": KERNEL,
    }
    for name, text in texts.items():
        (own / name).write_text(text)
    (own / "of_others.cu").write_text("// of another study\n")
    words = ("--device", "sim:mini", "--out", tmp_path / "r", "--no-report")
    done = call("run", own / "study.yaml", *words)
    assert done.code == 0, done.said
    done = call("verify", tmp_path / "r", "--package", tmp_path / "package")
    assert done.code == 0, done.said
    for name, text in texts.items():
        assert (tmp_path / "package" / name).read_text() == text
    assert not (tmp_path / "package" / "of_others.cu").exists()
    shutil.rmtree(own)
    before = (tmp_path / "package" / RECORDS).read_bytes()
    again = ("run", "study.yaml", "--device", "sim:mini", "--out", ".", "--no-report")
    done = call(*again, cwd=tmp_path / "package")
    assert done.code == 0, done.said
    assert (tmp_path / "package" / RECORDS).read_bytes() == before, "nothing was measured again"


def test_what_is_there_is_not_overwritten(package: Path) -> None:
    done = call("verify", package, "--package", package)
    assert done.code == 2
    assert "is there already; name a new folder" in done.err
