"""Questions in separate processes: whatever happens there becomes an answer."""

from __future__ import annotations

import sys

import pytest

from nqbench.doctor import probe
from nqbench.doctor.probe import QUESTIONS


def asked(code: str, limit_s: float = 30.0) -> probe.ProbeResult:
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
        ("raise ImportError('one\\n\\nNote: two\\nthree')", "ImportError: one"),
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


def test_all_questions_have_a_command_that_answers() -> None:
    answers = probe.ask_all(60.0)
    assert set(answers) == set(QUESTIONS)
    for name in ("packages", "compiler", "linker", "llvmlite", "numba"):  # the tests need them
        assert answers[name].ok, answers[name].failure
    assert answers["packages"].value["count"] > 10
    assert "sm_90" in answers["compiler"].value["archs"]
    for answer in answers.values():
        assert "\n" not in answer.failure
