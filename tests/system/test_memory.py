"""Little memory ends in a sentence at once: libraries may hang in it while they are loaded."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from nqbench.measure.worker.pool import _ending

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("words", "megabytes", "code"),
    [
        ("run STUDY --device sim", 300, 2),
        ("run STUDY --device sim", 650, 2),
        ("kernels", 350, 0),  # lists need little
        ("kernels", 100, 2),
        ("devices", 150, 2),
    ],
)
def test_too_little_ends_at_once(tmp_path: Path, words: str, megabytes: int, code: int) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    study = str(ROOT / "configs" / "quick.yaml")
    command = [sys.executable, "-m", "nqbench", *words.replace("STUDY", study).split()]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, check=False, preexec_fn=limit
    )
    assert done.returncode == code
    assert ("not enough memory" in done.stderr, "ulimit -v" in done.stderr) == (code > 0, code > 0)
    assert done.stderr.count("\n") == (code > 0)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    "said", ["Allocation failed", "what():  std::bad_alloc", "x.so: failed to map segment"]
)
def test_a_worker_that_aborts_for_memory_says_so(said: str) -> None:
    assert "more memory is needed" in _ending(-6, said)
    assert "native code" in _ending(-6, "assertion")
