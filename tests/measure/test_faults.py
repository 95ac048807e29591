"""Every status of a point, each from a real fault in a real worker, within one sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from nqbench.measure.run_state import RunOutcome
from nqbench.record import Record
from nqbench.runs.reading import read_records
from nqbench.study import Measure
from tests.measure.faulty import HOST, host, kernel
from tests.measure.test_pool import wait_gone
from tests.toys import ToyStudy, run_here

KERNELS = ("good", "wrong", "refused", "stray", "trap")
HOW = Measure(rounds=1, samples=3, budget_s=1.0, target=0.5, timeout_s=120.0)
"""No point but those that never end comes near the limit."""
TOO_LARGE = "n is over the limit of 27"

EXPECTED: Mapping[str, tuple[str, str]] = {
    "good": ("ok", ""),
    "wrong": ("wrong", "the answer is 43, but the known one is 42"),
    "refused": ("compile_error", "this kernel does not compile"),
    "stray": ("launch_error", "near no buffer"),
    "endless": ("timeout", "; raise measure.timeout or lower n"),
    "trap": ("launch_error", "trap"),
    "too large": ("skipped", TOO_LARGE),
    "last": ("ok", ""),
    "cpu.fine": ("ok", ""),
    "cpu.segfault": ("crashed", "SIGSEGV (native code used memory"),
    "cpu.greedy": ("crashed", "lower n or depth"),
    "cpu.hang": ("timeout", "longer than 0.5 s"),
    "cpu.leave": ("crashed", "exit code 3; it said: the dongle is missing"),
    "cpu.abort": ("crashed", "SIGABRT"),
}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunOutcome, list[Record]]:
    """One run over all faults in the simulator, with good points before, between and after, and
    all its records; those that never end have a run with a short limit."""
    folder = tmp_path_factory.mktemp("faults")
    points = [kernel(fault, n) for n, fault in enumerate(KERNELS, 1)]
    points += [kernel("too large", 30, TOO_LARGE), kernel("good", 29)]
    ended = [name for name in (*HOST[1:], HOST[0]) if name != "hang"]
    points += [host(program, n) for n, program in enumerate(ended, 1)]
    outcome = run_here(ToyStudy(points, HOW), "sim:mini", folder / "r", isolate=True)
    endless = ToyStudy([kernel("endless", 1), host("hang")], replace(HOW, timeout_s=0.5))
    assert run_here(endless, "sim:mini", folder / "e", isolate=True).counts == {"timeout": 2}
    return outcome, [r for name in "re" for r in read_records(folder / name).records]


def newest(records: list[Record]) -> dict[str, Record]:
    """The last record of each point."""
    found: dict[str, Record] = {}
    for record in records:
        fault = record.point["factors"].get("fault", record.point["system"])
        found["last" if record.point["factors"]["n"] == 29 else fault] = record
    return found


@pytest.mark.parametrize("name", EXPECTED)
def test_faults_get_status_and_reason(name: str, swept: tuple[RunOutcome, list[Record]]) -> None:
    record = newest(swept[1])[name]
    status, words = EXPECTED[name]
    assert (record.status, words in record.reason) == (status, True), record.reason
    assert "\n" not in record.reason
    if status != "ok":
        assert record.value_s is None
        assert not record.samples_s
        assert len(record.reason) > len("failed")


def test_the_sweep_goes_on_and_no_lost_worker_stays(swept: tuple[RunOutcome, list[Record]]) -> None:
    outcome, records = swept
    assert not outcome.interrupted
    assert outcome.counts == {
        **{"ok": 3, "wrong": 1, "compile_error": 1, "launch_error": 2},
        **{"crashed": 4, "skipped": 1},
    }
    assert {f.status for f in outcome.failures} == set(outcome.counts) - {"ok", "skipped"}
    assert len([r for r in records if r.status == "ok" and r.round > 0]) == 3
    lost = [r.worker for r in records if r.status in ("crashed", "timeout")]
    later = {r.worker: i for i, r in enumerate(records)}
    for pid in lost:
        # What a worker did is all before its end.
        assert records[later[pid]].status in ("crashed", "timeout")
    assert len(set(lost)) == len(lost)
    assert all(wait_gone(r.worker) for r in records if r.worker)
