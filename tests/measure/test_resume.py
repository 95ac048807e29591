"""What is measured again after a change: exactly the points that the change concerns."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import nqbench.workloads
from nqbench.errors import StoreError
from nqbench.measure import keys as keys_module
from nqbench.measure.manifest import versions
from nqbench.measure.run_state import Listener
from nqbench.measure.worker.messages import Hello
from nqbench.measure.worker.session import Session
from nqbench.point import Point
from nqbench.runs.frame import load
from nqbench.runs.reading import read_records
from nqbench.study import Measure
from nqbench.workloads import ExternalWorkload
from tests.toys import ToyStudy, run_here

PACKAGE = "resumed_workload"
WORK = '''"""A workload whose files are edited."""

from pathlib import Path

from nqbench.plan import Buffer, CpuPlan, KernelPlan
from nqbench.workloads.base import Workload
from resumed_workload.helper import THREADS

OPTIONS = ()
ENTRY = "good"


class Work(Workload):
    """One kernel and one host program."""

    name = "work"
    cpu_systems = frozenset({"cpu.run", "cpu.walk"})

    def plan(self, factors, system, device):
        """The plan."""
        if system is not None:
            return CpuPlan("run", "resumed_workload.host:run", ())
        out = Buffer("out", "uint64", 1, output=True)
        return KernelPlan(
            Path(__file__).with_name("kernel.cu"), ENTRY, ("out",), buffers=(out,), grid=(1, 1, 1),
            block=(THREADS, 1, 1), options=OPTIONS, about={"answer": 42},
        )

    def answer(self, plan, outputs):
        return int(outputs["answer"][0])

    def expected(self, factors):
        return 42


WORK = Work()
'''
FILES = {
    "__init__.py": "",
    "work.py": WORK,
    "helper.py": "THREADS = 32\n",
    "host.py": "def run():\n    return 42\n",
    "kernel.cu": '// about\n#include "part.cuh"\n__global__ void good(unsigned long long *out);\n',
    "part.cuh": "#define TURNS 3\n",
    "other.py": "UNUSED = 1\n",
    "notes.md": "notes\n",
}
HOW = Measure(rounds=2, samples=5, budget_s=20.0, target=0.5)
ALL = {"k6", "k7", "host"}
KERNELS = {"k6", "k7"}


def point(n: int, system: str | None = None, **factors: Any) -> Point:
    """A point of the edited workload."""
    name = f"{PACKAGE}.work:WORK"
    return Point("resumed", "sizes", name, system, {"n": n, "flavour": "plain", **factors})


@dataclass
class Bench:
    """A finished run; ``again`` says which points a second one measures anew."""

    folder: Path
    package: Path
    monkeypatch: pytest.MonkeyPatch
    points: dict[str, Point] = field(
        default_factory=lambda: {"k6": point(6), "k7": point(7), "host": point(5, "cpu.run")}
    )
    how: Measure = HOW
    text: str = "name: resumed\n"

    def run(self) -> None:
        """Measure, or go on."""
        study = ToyStudy(list(self.points.values()), self.how, "resumed", self.text)
        outcome = run_here(study, "fake", self.folder)
        assert outcome.counts == {"ok": len(self.points)}

    def again(self) -> set[str]:
        """Names of the points with new records."""
        before = len(read_records(self.folder).records)
        self.run()
        added = read_records(self.folder).records[before:]
        told = {(p.system, p.n): name for name, p in self.points.items()}
        table = load(self.folder)  # what counts is one measurement per round, whatever was before
        assert len(table) == len(self.points) * (self.how.rounds + 1)
        return {told[r.point["system"], r.point["factors"]["n"]] for r in added}

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace text in a file of the workload."""
        file = self.package / name
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    def hello(self, part: str, **changed: Any) -> None:
        """Let the device introduce itself differently."""
        original = Session.hello

        def hello(session: Session) -> Hello:
            said = original(session)
            own = getattr(said, part)
            made: Any = replace(own, **changed) if part == "facts" else {**own, **changed}
            return replace(said, **{part: made})

        self.monkeypatch.setattr(Session, "hello", hello)

    def versions(self, **changed: str) -> None:
        """Pretend that other versions are installed."""

        def pretended(names: tuple[str, ...]) -> Mapping[str, str]:
            other = {name.replace("_", "-"): v for name, v in changed.items()}
            return {**versions(names), **{k: v for k, v in other.items() if k in names}}

        self.monkeypatch.setattr(keys_module, "versions", pretended)

    def measured(self, **changed: Any) -> None:
        """Change how the study is measured."""
        self.how = replace(self.how, **changed)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    package = tmp_path / "import" / PACKAGE
    package.mkdir(parents=True)
    for name, text in FILES.items():
        (package / name).write_text(text)
    monkeypatch.syspath_prepend(package.parent)
    importlib.invalidate_caches()
    workload = f"{PACKAGE}.work:WORK"
    nqbench.workloads.register(ExternalWorkload("", str(package.parent), workload))
    made = Bench(tmp_path / "r", package, monkeypatch)
    made.run()
    yield made
    for name in [n for n in sys.modules if n.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    nqbench.workloads._external.pop(workload)
    nqbench.workloads._get.cache_clear()


Change = Callable[[Bench], object]
CHANGES: dict[str, tuple[Change, set[str]]] = {
    "kernel": (lambda b: b.edit("kernel.cu", "void good", "void __noinline__ good"), KERNELS),
    "include": (lambda b: b.edit("part.cuh", "TURNS 3", "TURNS 4"), KERNELS),
    "comment in the kernel": (lambda b: b.edit("kernel.cu", "// about", "// more"), KERNELS),
    "option": (lambda b: b.edit("work.py", "OPTIONS = ()", "OPTIONS = ('-G',)"), ALL),
    "entry": (lambda b: b.edit("work.py", '"good"', '"better"'), ALL),
    "helper": (lambda b: b.edit("helper.py", "32", "64"), ALL),
    "docstring": (lambda b: b.edit("work.py", "One kernel and", "Still one kernel and"), ALL),
    "a module that only a level may need": (lambda b: b.edit("other.py", "1", "2"), ALL),
    "nqbench": (lambda b: b.monkeypatch.setattr(keys_module, "__version__", "99"), ALL),
    "host program": (lambda b: b.edit("host.py", "return 42", "return 40 + 2"), ALL),
    "architecture": (lambda b: b.hello("facts", compute_capability=(8, 0)), KERNELS),
    "driver": (lambda b: b.hello("identity", driver="999.1"), KERNELS),
    "uuid": (lambda b: b.hello("identity", uuid="GPU-2"), KERNELS),
    "processor": (lambda b: b.hello("host", name="another"), {"host"}),
    "compiler": (lambda b: b.versions(nvidia_cuda_nvrtc="99"), KERNELS),
    "pycuda": (lambda b: b.versions(pycuda="99"), KERNELS),
    "numba": (lambda b: b.versions(numba="99"), ALL),
    "Python": (lambda b: b.monkeypatch.setattr("platform.python_version", lambda: "3"), {"host"}),
    "target": (lambda b: b.measured(target=0.4), ALL),
    "samples": (lambda b: b.measured(samples=6), ALL),
    "warm-up": (lambda b: b.measured(warmup=2), ALL),
    "time per block": (lambda b: b.measured(budget_s=10.0), ALL),
    "n": (lambda b: b.points.update(k7=point(8)), {"k7"}),
    "a factor": (lambda b: b.points.update(k7=point(7, flavour="salted")), {"k7"}),
    "another factor": (lambda b: b.points.update(k7=point(7, depth=3)), {"k7"}),
    "nothing": (lambda b: None, set()),
    "a file written again": (lambda b: b.edit("other.py", "UNUSED", "UNUSED"), set()),
    "notes": (lambda b: b.edit("notes.md", "notes", "more notes"), set()),
    "the study's text": (lambda b: setattr(b, "text", "name: resumed\nabout: other\n"), set()),
    "when a launch is given up": (lambda b: b.measured(timeout_s=99.0), set()),
    "versions that measure nothing": (lambda b: b.versions(pandas="99", scipy="99"), set()),
    "system": (lambda b: b.points.update(host=point(5, "cpu.walk")), {"host"}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_measures_the_points_that_it_concerns(name: str, bench: Bench) -> None:
    change, concerned = CHANGES[name]
    change(bench)
    assert bench.again() == concerned
    assert bench.again() == set()


def test_more_rounds_of_the_same_length_add_to_those_there_are(bench: Bench) -> None:
    before = read_records(bench.folder).records
    bench.measured(rounds=3, budget_s=30.0)
    assert bench.again() == ALL
    added = read_records(bench.folder).records[len(before) :]
    assert {record.round for record in added} == {3}


def test_an_edit_while_the_kernel_is_measured_ends_the_run(bench: Bench) -> None:
    """Later rounds would measure the new kernel under the old one's key."""

    class Editor(Listener):
        def stage(self, name: str, total: int) -> None:
            if name.startswith("timing, round 2"):
                bench.edit("part.cuh", "TURNS 4", "TURNS 5")

    bench.edit("part.cuh", "TURNS 3", "TURNS 4")
    study = ToyStudy(list(bench.points.values()), HOW, "resumed")
    with pytest.raises(StoreError, match=r"changed while it was measured.*kept, run again"):
        run_here(study, "fake", bench.folder, listener=Editor())
    kept: Sequence[Any] = read_records(bench.folder).records[-4:]
    assert [r.round for r in kept] == [0, 0, 1, 1]  # of two kernels, and no measurement of round 2
    assert bench.again() == KERNELS
    bench.edit("part.cuh", "TURNS 5", "TURNS 3")
    assert bench.again() == set()  # undoing a change finds the old measurements again
