"""Questions in separate processes: whatever happens there becomes an answer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nqbench.doctor import probe
from nqbench.doctor.probe import QUESTIONS
from nqbench.doctor.report import examine
from tests.cli.call import ROOT


def asked(code: str, limit_s: float = 3600.0) -> probe.ProbeResult:
    return probe.ask({"it": [sys.executable, "-c", code]}, limit_s)["it"]


def test_json_is_the_answer_whatever_a_package_prints_before() -> None:
    assert asked("print('{\"a\": [1, 2]}')") == probe.ProbeResult({"a": [1, 2]})
    assert asked("print('hello'); print('{\"a\": 1}')").value == {"a": 1}


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        ("import no_such_thing_at_all", "no_such_thing_at_all is not installed"),
        ("raise SystemError('broken')", "SystemError: broken"),
        ("assert False", "AssertionError"),
        (
            "from nqbench.errors import DeviceUnavailable as E; raise E('no GPU; buy one')",
            "no GPU; buy one",
        ),
        (
            "raise ImportError('read this\\n\\nOriginal error was: no x.so')",
            "Original error was: no x.so",
        ),
        ("import os; os.abort()", "killed by SIGABRT"),
        ("import sys; sys.exit(3)", "exit code 3"),
        ("print('gibberish')", "an answer that cannot be read: 'gibberish'"),
    ],
)
def test_failures_become_one_line(code: str, failure: str) -> None:
    answer = asked(code)
    assert not answer.ok
    assert answer.failure == failure


def test_a_hanging_driver_costs_only_the_limit() -> None:
    """It is ended: waiting for it would take longer than pytest lets a test."""
    assert asked("import time; time.sleep(9999)", limit_s=0.1).failure == "no answer within 0.1 s"


def test_every_question_has_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages that break are answers too, and rows of the doctor."""
    (tmp_path / "numba.py").write_text("import os; os.abort()\n")
    (tmp_path / "llvmlite.py").write_text("raise SystemError('dynamic module not initialised')\n")
    (tmp_path / "pynvml.py").write_text("def nvmlInit(): return 1/0\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    answers = probe.ask_all(3600.0)
    assert set(answers) == set(QUESTIONS)
    for name in ("packages", "compiler", "linker"):  # the tests need them
        assert answers[name].ok, answers[name].failure
    assert answers["packages"].value["count"] > 10
    assert "sm_90" in answers["compiler"].value["archs"]
    assert answers["numba"].failure == "killed by SIGABRT"
    assert answers["llvmlite"].failure == "SystemError: dynamic module not initialised"
    assert "ZeroDivisionError" in answers["nvml"].failure
    assert not any("\n" in answer.failure for answer in answers.values())
    report = examine("sim", ask=lambda: answers)
    assert report.summary() == "sim cannot be used: llvmlite, numba"
