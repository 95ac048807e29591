"""After a fault that spoils this process for the GPU, the tests that are left run in a fresh one.

Otherwise every later test would fail with the fault of an earlier one. The fresh process hands its
reports back one by one, and may itself be spoilt and start another.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import mkstemp
from typing import Any, Final

import pytest

REPORTS: Final = "NQBENCH_TEST_REPORTS"
"""Names the file to which a fresh process writes its reports, a line of JSON each."""
POLL_S: Final = 0.05
END_S: Final = 30.0
"""For a process that was interrupted, before it is killed: its fixtures close the device."""


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Put SIGINT off: a session that is interrupted while it starts a process loses track of it.

    The process can itself be interrupted, even where this one ignores it (a job in the background).
    """
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came and before is not signal.SIG_IGN:
        raise KeyboardInterrupt


class Afresh:
    """A plugin; ``lost`` says whether this process can use the GPU no more."""

    def __init__(self, config: pytest.Config, folder: Path, lost: Callable[[], bool]) -> None:
        self._config, self._folder, self._lost = config, folder, lost
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: Iterator[str] = iter(())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if item.get_closest_marker("gpu") is None or not self._lost():
            return None
        if self._process is None:
            self._start(item)
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._reports_of(item):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if REPORTS in os.environ:
            data = self._config.hook.pytest_report_to_serializable(
                config=self._config, report=report
            )
            with Path(os.environ[REPORTS]).open("a", encoding="utf-8") as file:
                file.write(json.dumps(data) + "\n")

    def pytest_sessionfinish(self) -> None:
        """Leave no process behind where this session ends early (``--maxfail``)."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # which it passes on in the same way
            try:
                self._process.wait(END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _start(self, item: pytest.Item) -> None:
        """Run this test and those after it."""
        handle, name = mkstemp(".jsonl", dir=self._folder)  # no other process may write to it
        os.close(handle)
        path = Path(name)
        items = item.session.items
        left = [i for i in items[items.index(item) :] if i.get_closest_marker("gpu")]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        with interrupts_later():
            self._process = subprocess.Popen(
                [*command, *(i.nodeid for i in left)],
                cwd=self._config.rootpath,
                env={**os.environ, REPORTS: str(path)},
                stdout=subprocess.DEVNULL,
            )
        self._lines = self._follow(path, self._process)

    @staticmethod
    def _follow(path: Path, process: subprocess.Popen[bytes]) -> Iterator[str]:
        with path.open(encoding="utf-8") as file:
            kept = ""
            while True:
                ended = process.poll() is not None  # before reading, so that nothing is missed
                kept += file.readline()
                if kept.endswith("\n"):
                    yield kept
                    kept = ""
                elif ended:
                    return
                else:
                    time.sleep(POLL_S)

    def _reports_of(self, item: pytest.Item) -> Iterator[pytest.TestReport]:
        """Those of one test, as they come; one that says so if its process ended without them."""
        for line in self._lines:
            data: dict[str, Any] = json.loads(line)
            if data["nodeid"] != item.nodeid:
                continue
            if isinstance(data["longrepr"], list):  # JSON has no tuples, the place of a skip is one
                data["longrepr"] = tuple(data["longrepr"])
            yield self._config.hook.pytest_report_from_serializable(config=self._config, data=data)
            if data["when"] == "teardown":
                return
        code = self._process.wait() if self._process else None
        self._process = None  # another one for the next test
        said = f"the fresh process of this test ended with {code} before the test did"
        told = partial(pytest.TestReport, item.nodeid, item.location, {})
        yield told(outcome="failed", longrepr=said, when="call")
        yield told(outcome="passed", longrepr=None, when="teardown")
