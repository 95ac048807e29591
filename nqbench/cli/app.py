"""The command line, assembled: one module per command, one exit code per kind of error.

Exit codes are a contract: 0 all points measured and verified; 1 some points failed; 2 the study or
the command line is wrong (nothing was run); 130 interrupted (what was measured is kept).
Everything heavy is imported inside the commands, so that ``nqbench --help`` stays quick.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from nqbench.cli.bottleneck import bottleneck
from nqbench.cli.check import check
from nqbench.cli.claims import claims
from nqbench.cli.compare import compare
from nqbench.cli.completion import ASKED, completing
from nqbench.cli.count import count
from nqbench.cli.devices import devices
from nqbench.cli.doctor import doctor
from nqbench.cli.effects import effects
from nqbench.cli.exit_codes import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_WRONG
from nqbench.cli.explain import explain
from nqbench.cli.export import export
from nqbench.cli.import_ import import_
from nqbench.cli.init import init
from nqbench.cli.kernels import kernels
from nqbench.cli.options import FRESH, command_line
from nqbench.cli.report import report
from nqbench.cli.reproduce import reproduce
from nqbench.cli.roofline import roofline
from nqbench.cli.run import run
from nqbench.cli.schema import schema
from nqbench.cli.selftest import selftest
from nqbench.cli.site import site
from nqbench.cli.static import static
from nqbench.cli.worker import worker
from nqbench.errors import (
    DeviceUnavailable,
    FolderRefused,
    InfeasibleError,
    NqbenchError,
    StudyError,
)
from nqbench.system.suggest import shown

COMMANDS: Final = (
    *(init, run, report, reproduce, claims, effects, compare, site, count, static, check, explain),
    *(kernels, devices, doctor, schema, worker),
    *(bottleneck, roofline, selftest, import_, export),
)
"""In the order of ``nqbench --help``."""
LISTS: Final = ("kernels", "devices", "schema")
"""Commands that compute nothing, and so need little memory."""
READERS: Final = ("report", "claims", "effects", "compare", "site", "static", "explain", "export")
"""Commands that measure nothing."""
HELP_WIDTH: Final = 100

app = typer.Typer(
    help="Reproducible benchmarks and ablations of irregular search on GPUs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: quicker, and cut at no width
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": HELP_WIDTH},
)


def _version(asked: bool) -> None:
    if asked:
        from nqbench.system.versions import __version__

        typer.echo(f"nqbench {__version__}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 (its callback acts)
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print it and exit."),
    ] = False,
) -> None:
    """Reproducible benchmarks and ablations of irregular search on GPUs."""
    command = context.invoked_subcommand
    # The doctor reports everything that is missing, memory included.
    if command != "doctor" and not {"-h", "--help"}.intersection(sys.argv):
        from nqbench.system.machine import LIST_BYTES, RUN_BYTES, check_room

        check_room(LIST_BYTES if command in LISTS else RUN_BYTES)


for _command in COMMANDS:
    _about = (_command.__doc__ or "").partition("\n")[0]  # all of it; typer would cut it
    app.command(_command.__name__.strip("_"), short_help=_about)(_command)


def main() -> None:
    """Run a command; turn expected errors into one sentence and the contract's exit code."""
    try:
        completing(_run) if ASKED in os.environ else _run()
    except (StudyError, DeviceUnavailable, InfeasibleError, FolderRefused) as error:
        _say(str(error))
        sys.exit(EXIT_WRONG)
    except NqbenchError as error:
        _say(str(error))
        sys.exit(EXIT_FAILED)
    except SystemExit as end:
        if end.code == EXIT_INTERRUPTED:  # Ctrl-C, which typer turns into this
            _say(f"interrupted; {_kept(command_line())}")
        raise
    except BrokenPipeError:
        # The reader went away (``nqbench ... | head``): nothing to say, and nowhere to say it.
        _end_output()
    except OSError as error:
        # Errors of files are NqbenchErrors; what is left are the standard streams, and names that
        # no file system can hold.
        _say(_what(error))
        if error.errno == errno.ENAMETOOLONG:
            sys.exit(EXIT_WRONG)
        _end_output()


def _run() -> None:
    app(prog_name="nqbench")


def _say(sentence: str) -> None:
    """One line; on a terminal, several that break between words."""
    text = f"nqbench: {sentence}"
    if sys.stderr is not None and sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        text = textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
    typer.echo(text, err=True)


def _kept(words: Sequence[str]) -> str:
    """What an interrupted command leaves behind."""
    if words[1:2] == ["count"] and not any(word.startswith("--log") for word in words):
        return "nothing is kept of a count without --log FILE"
    again = shlex.join(word for word in words if word != FRESH)
    if words[1:2] and words[1] in READERS:
        return f"no record was changed; repeat it with: {again}"
    return f"what was measured is kept; resume with: {again}"


def _end_output() -> None:
    """End with ``EXIT_FAILED``, without a second complaint when standard output is flushed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(EXIT_FAILED)


def _what(error: OSError) -> str:
    if error.filename is None:
        try:
            Path.cwd()
        except OSError:
            return "the working directory has been deleted; change into another one"
    if error.errno == errno.ENAMETOOLONG:
        return f"the path {shown(str(error.filename))} is too long; give a shorter one"
    # A library that cannot be loaded has no error number, and so no strerror.
    return f"{error.filename or 'the output'}: {error.strerror}" if error.strerror else str(error)
