"""The runner itself is killed or interrupted; what was measured stays, and the rest follows."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from nqbench.runs.reading import RECORDS, read_records
from tests.measure.test_runner import QUICK, measure, sizes

DEVICE = "fake:noise=0.003,round=0.004,seed=7"
SIZES = (8, 9, 10, 11)
HOW = replace(QUICK, budget_s=60.0, timeout_s=600.0)
"""Time enough that noise alone decides how many samples are taken, on a busy machine too."""

DYING = """
import os, signal, sys
from pathlib import Path
from nqbench.measure.run_state import Listener
from nqbench.measure.worker.pool import WorkerPool
from tests.measure.test_interrupted import DEVICE, HOW, SIZES
from tests.measure.test_runner import measure, sizes

class Dying(Listener):
    stored = 0
    def advanced(self, record=None):
        self.stored += record is not None
        if self.stored == int(sys.argv[2]):
            print(record.point["factors"]["n"], record.round, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

measure(Path(sys.argv[1]), sizes(*SIZES), DEVICE, HOW, listener=Dying())
"""


def test_a_runner_killed_again_and_again_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    """Each life stores a few records and dies; what it said to be stored is there ever after."""

    def times(path: Path) -> dict[tuple[int, int], tuple[float, ...]]:
        records = read_records(path).records
        return {(r.point["factors"]["n"], r.round): r.samples_s for r in records}

    path, undisturbed = tmp_path / "r", tmp_path / "u"
    promised: set[tuple[int, int]] = set()
    before = b""
    for stored in (1, 3, 2, 5):
        command = [sys.executable, "-c", DYING, str(path), str(stored)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        n, round_ = map(int, done.stdout.split())
        promised.add((n, round_))
        after = (path / RECORDS).read_bytes()
        assert after.startswith(before)
        assert after.count(b"\n") == before.count(b"\n") + stored
        assert promised <= times(path).keys()
        before = after
    assert measure(path, sizes(*SIZES), DEVICE, HOW).counts == {"ok": 4}
    assert measure(undisturbed, sizes(*SIZES), DEVICE, HOW).counts == {"ok": 4}
    assert times(path) == times(undisturbed)
