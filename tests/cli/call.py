"""The command line as scripts see it: exit code, output, errors."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from benchmarks.in_process import in_process
from nqbench.cli import app
from nqbench.cli.show.console import hush

ROOT = Path(__file__).parents[2]
PACKAGES = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
SURROUNDINGS = {"PYTHONWARNINGS": "error", "COLUMNS": "200", "PYTHONPATH": PACKAGES}


class Done(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Everything that was printed."""
        return self.out + self.err


def call(*words: object, cwd: Path | None = None, **environment: str) -> Done:
    """Run a command in this process, and measure in it too: starting workers takes the longest.

    Where worker processes are the subject, ``process`` runs the command.
    """
    out, err = io.StringIO(), io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(in_process())
        stack.enter_context(mock.patch.object(sys, "argv", ["nqbench", *map(str, words)]))
        stack.enter_context(mock.patch.dict(os.environ, SURROUNDINGS | environment))
        stack.enter_context(contextlib.chdir(cwd or Path.cwd()))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.callback(hush, quiet=False)
        try:
            app.main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
    return Done(code, out.getvalue(), err.getvalue())


def process(*words: object, cwd: Path | None = None, **environment: str) -> Done:
    """Run a command in a separate process."""
    command = [sys.executable, "-m", "nqbench", *map(str, words)]
    env = {**os.environ, **SURROUNDINGS, **environment}
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)
