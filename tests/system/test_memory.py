"""Little memory ends in a sentence at once: libraries may hang in it while they are loaded."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from nqbench.measure.worker.pool import _ending
from nqbench.system.machine import RUN_BYTES

ROOT = Path(__file__).parents[2]


def limited(limit_bytes: int, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))

    return subprocess.run(
        [sys.executable, "-m", "nqbench", *words],
        capture_output=True, text=True, cwd=cwd, timeout=300, check=False,
        preexec_fn=limit,
    )  # fmt: skip


@pytest.mark.parametrize("megabytes", [300, 650])
def test_a_run_ends_at_once(tmp_path: Path, megabytes: int) -> None:
    study = str(ROOT / "configs" / "quick.yaml")
    done = limited(megabytes << 20, "run", study, "--device", "sim", cwd=tmp_path)
    assert done.returncode == 2
    assert "not enough memory" in done.stderr
    assert "ulimit -v" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "results").exists()


def test_lists_need_little(tmp_path: Path) -> None:
    assert limited(RUN_BYTES // 2, "kernels", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(("command", "megabytes"), [("kernels", 100), ("devices", 150)])
def test_a_list_ends_in_a_sentence_too(tmp_path: Path, command: str, megabytes: int) -> None:
    done = limited(megabytes << 20, command, cwd=tmp_path)
    assert done.returncode == 2
    assert "not enough memory" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "said", ["Allocation failed", "what():  std::bad_alloc", "x.so: failed to map segment"]
)
def test_a_worker_that_aborts_for_memory_says_so(said: str) -> None:
    assert "more memory is needed" in _ending(-6, said)
    assert "native code" in _ending(-6, "assertion")
