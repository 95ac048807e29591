"""What a key is made of; ``test_resume`` shows what each change of it measures again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nqbench import workloads
from nqbench.facts import DeviceFacts
from nqbench.measure.keys import Keys, Watched, workload_files
from nqbench.measure.worker.messages import Hello
from nqbench.point import Point
from nqbench.workloads import ExternalWorkload, register
from tests.measure.toy import point

FACTS = DeviceFacts("GPU", "cuda", (9, 0), 4)
HELLO = Hello(
    spec="cuda:0",
    timed=True,
    deterministic=False,
    identity={"name": "GPU", "driver": "580.1"},
    facts=FACTS,
    host={"name": "CPU", "governor": "performance"},
    no_telemetry="",
    pid=1,
)
LIBRARIES = ("purelib", "platlib", "stdlib")
PROTOCOL = {"target": 0.005, "samples": 10}


def key(where: Point, protocol: Any = PROTOCOL, **hello: Any) -> str:
    """The key of a point on a device."""
    return Keys(replace(HELLO, **hello), protocol).of(where)


def names(workload: str, *, on_cpu: bool) -> set[str]:
    """The names of a workload's files."""
    return {path.name for path in workload_files(workload, on_cpu=on_cpu)}


def test_a_workload_depends_on_its_folder_and_on_what_its_kernels_include() -> None:
    found = names("local_search", on_cpu=False)
    assert {"plans.py", "searches.py", "tiled.cuh", "local_search.cu", "variants.cuh"} <= found
    assert not {"nqueens.cu", "base.py", "plan.py", "session.py"} & found
    on_cpu = names("local_search", on_cpu=True)
    assert on_cpu == {name for name in found if name.endswith(".py")}


LONE = """
from nqbench.workloads.base import Workload


class Work(Workload):
    plan = answer = None


WORK = Work()
"""


@pytest.fixture
def lone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A workload in a module that is in no package, beside a kernel and a folder."""
    (tmp_path / "kernel.cu").write_text('#include "below/a.cuh"\nint main();\n')
    below = tmp_path / "below"
    below.mkdir()
    (below / "a.cuh").write_text('#include "b.cuh"\n#include "missing.cuh"\n')
    (below / "b.cuh").write_text('#include "a.cuh"\n')
    (below / "not_its_own.py").write_text("")
    (tmp_path / ".#lone_workload.py").symlink_to("user@host.1")  # an editor's lock
    (tmp_path / "lone_workload.py").write_text(LONE)
    monkeypatch.syspath_prepend(tmp_path)
    register(ExternalWorkload("", str(tmp_path), "lone_workload:WORK"))
    yield tmp_path
    workloads._external.pop("lone_workload:WORK")
    workloads._get.cache_clear()
    sys.modules.pop("lone_workload", None)


def test_a_lone_module_depends_on_its_neighbours_unless_installed(
    lone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "lone_workload:WORK"
    assert names(name, on_cpu=False) == {"lone_workload.py", "kernel.cu", "a.cuh", "b.cuh"}
    monkeypatch.setattr("sysconfig.get_paths", lambda: dict.fromkeys(LIBRARIES, lone))
    assert names(name, on_cpu=False) == {"lone_workload.py"}


def test_files_are_read_again_only_once_they_are_touched(
    lone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Watched(lambda: workload_files("lone_workload:WORK", on_cpu=False))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} was read"))
        assert not files.changed()
    header = lone / "below" / "b.cuh"
    before = header.read_text()
    header.write_text(before)
    assert not files.changed()
    added = lone / "added.py"
    changes: list[tuple[Callable[[], object], Callable[[], object]]] = [
        (lambda: header.write_text("int b;\n"), lambda: header.write_text(before)),
        (lambda: added.write_text(""), added.unlink),
    ]
    for change, undo in changes:
        change()
        assert [files.changed(), files.changed()] == [True, True]
        undo()
        assert not files.changed()


def test_what_a_key_depends_on() -> None:
    bare = point(8)
    assert key(bare) == key(point(8))
    assert key(bare) == key(replace(bare, derived={"jobs": 3}))
    one, other = (replace(bare, derived={"board_sha256": word}) for word in ("ab", "cd"))
    moved = replace(bare, sweep="another")
    assert len({key(p) for p in (bare, one, other, moved)}) == 4
    assert key(bare, {}) != key(bare)  # how it is sampled, where anything is
    assert key(bare, {}, deterministic=True) == key(bare, deterministic=True)
