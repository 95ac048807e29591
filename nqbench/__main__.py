"""The process of the command line: ``nqbench``, or ``python -m nqbench``.

Errors outside the commands end in a sentence here: an interruption while modules load, a missing
package, a character that the terminal cannot show, a bug in nqbench.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import TracebackType
from typing import Final

from nqbench.cli import EXIT_INTERRUPTED, EXIT_WRONG
from nqbench.system.crash import UNEXPECTED, summary

TRACEBACK: Final = "NQBENCH_TRACEBACK"
"""Variable that makes an unexpected exception show its traceback too."""


def main() -> None:
    """Run the command line; exit codes as in ``nqbench.cli.app``."""
    try:
        _prepare()
        try:
            from nqbench.cli import app as cli
        except ImportError as error:
            sys.stderr.write(f"nqbench: {lacking(error)}\n")
            sys.exit(EXIT_WRONG)
        cli.main()
    except KeyboardInterrupt:  # before or after typer, which turns it into an exit
        sys.stderr.write("nqbench: interrupted; what was measured is kept\n")
        sys.exit(EXIT_INTERRUPTED)
    except SystemExit as end:
        if end.code == EXIT_INTERRUPTED and sum(not t.daemon for t in threading.enumerate()) > 1:
            sys.stdout.flush()
            os._exit(EXIT_INTERRUPTED)  # Python would wait for a launch in the simulator
        raise
    finally:
        # While Python ends there is nothing to keep, and nobody to catch an interruption.
        for number in signal.valid_signals():
            if signal.getsignal(number) is signal.default_int_handler:
                signal.signal(number, signal.SIG_DFL)


def _prepare() -> None:
    sys.excepthook = _say_unexpected
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # absent, or not a file, where it was closed
            # It may lack characters, and a path may hold bytes that are not text.
            stream.reconfigure(errors="backslashreplace")
    # A batch system or a container stops a job by the first, a lost connection by the second.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # under nohup it is ignored, and stays so
            signal.signal(number, signal.default_int_handler)  # as after Ctrl-C


def _say_unexpected(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Instead of a traceback (``sys.excepthook``)."""
    if os.environ.get(TRACEBACK) or not issubclass(kind, Exception):
        sys.__excepthook__(kind, error, trace)
        return
    if issubclass(kind, ImportError):
        said = lacking(error)
    elif issubclass(kind, MemoryError):
        said = (
            "there is not enough memory; what was measured is kept: close programs, lower n, or"
            " raise ulimit -v"
        )
    else:
        said = (
            f"{summary(error)}; {UNEXPECTED.strip()} means a mistake in nqbench or in a workload"
            f" of your own, and what was measured is kept: please report it with what {TRACEBACK}=1"
            " shows"
        )
    sys.stderr.write(f"nqbench: {said}\n")


def lacking(error: BaseException) -> str:
    """Which package is missing or cannot be loaded, and how to install it."""
    name = getattr(error, "name", None)
    if isinstance(error, ModuleNotFoundError) and name:
        what = f"the Python package {name.partition('.')[0]} is not installed"
    else:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        # numpy begins with advice and ends with the cause
        cause = next((x for x in lines if x.startswith("Original error")), "".join(lines[:1]))
        what = f"a Python package cannot be loaded ({cause or type(error).__name__})"
    return (
        f"{what} for {sys.executable}; `make setup` in the source folder installs all that nqbench"
        f" needs into .venv, and {sys.executable} -m pip install nqbench into this Python"
    )


if __name__ == "__main__":
    main()
