"""The command line, assembled: commands in groups, what old names became, errors as sentences.

Everything heavy is imported inside the commands, so that ``nqbench --help`` stays quick.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from nqbench.cli import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_WRONG
from nqbench.cli.kernels import check, explain, kernels
from nqbench.cli.machine import count, devices, doctor, selftest, worker
from nqbench.cli.options import FRESH, command_line
from nqbench.cli.papers import claims, reproduce
from nqbench.cli.results import compare, import_, report, verify
from nqbench.cli.studies import bottleneck, init, run, static
from nqbench.errors import DamageWarning, NqbenchError, StudyError
from nqbench.system.files import harmless
from nqbench.system.suggest import shown

COMMANDS: Final[Mapping[str, Sequence[Callable[..., None]]]] = {
    "Commands": (init, run, report, compare, check, explain, doctor),
    "Papers": (reproduce, claims),
    "Queens": (count,),
    "More": (verify, static, bottleneck, devices, kernels, import_, worker),
}
"""Groups of ``nqbench --help``; the first has what most people need, in the order of use."""
FORMER: Final = Path(__file__).with_name("former.json")
"""What a former command, or a command with one of its former words, did and what to use now."""
MEASURING: Final = ("run", "reproduce", "bottleneck", "count")
"""Commands that can be resumed."""


class CommandGroup(TyperGroup):
    """Shows the commands in groups, and knows those that are gone."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The commands come first: all that most people need is on the first screen. A heading for
        each group; no sentence is cut, as click would."""
        width = max(map(len, self.commands))
        for title, commands in COMMANDS.items():
            about = {_name(one): (one.__doc__ or "").partition("\n")[0] for one in commands}
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), about[name]) for name in about])
        with formatter.section("Options"):
            formatter.write_dl([p.get_help_record(ctx) for p in self.get_params(ctx)])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that the words ask for. Raises ``StudyError`` for one that is gone."""
        given = {part for word in args for part in word.split("=")}
        for former, sentence in json.loads(FORMER.read_text(encoding="utf-8")).items():
            if former.split()[0] == args[0] and given.issuperset(former.split()):
                raise StudyError(f"{former} is gone: it {sentence}")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=CommandGroup,
    help="Which change makes a CUDA kernel faster, by how much, and is its answer still right?",
    epilog="nqbench COMMAND -h explains a command. Start with: nqbench init conv",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: quicker, and cut at no width
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
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
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it and exit.")
    ] = False,
) -> None:
    """What all commands need."""
    command = context.invoked_subcommand
    # The doctor reports everything that is missing, memory included.
    if command != "doctor" and not {"-h", "--help"}.intersection(sys.argv):
        from nqbench.system.machine import LIST_BYTES, RUN_BYTES, check_room

        check_room(LIST_BYTES if command in ("init", "kernels", "devices") else RUN_BYTES)


def _name(command: Callable[..., None]) -> str:
    return command.__name__.strip("_")


for _command in (*chain(*COMMANDS.values()), selftest):  # which is in no group of the help
    app.command(_name(_command))(_command)


def main() -> None:
    """Run a command; turn expected errors into one sentence and the contract's exit code."""
    try:
        with _telling_damage():
            app(prog_name="nqbench")
    except NqbenchError as error:
        _say(str(error))
        sys.exit(error.exit_code)
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


@contextmanager
def _telling_damage() -> Iterator[None]:
    """Say once what was left out because it is damaged; other warnings look as Python has them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("module", category=DamageWarning)
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, DamageWarning):
                _say(str(message))
            else:
                shown(message, category, *place, **more)

        warnings.showwarning = show
        yield


def _say(sentence: str) -> None:
    """One line; on a terminal, several that break between words."""
    text = f"nqbench: {harmless(sentence)}"
    if sys.stderr is not None and sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        text = textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
    typer.echo(text, err=True)


def _kept(words: Sequence[str]) -> str:
    """What an interrupted command leaves behind."""
    if words[1:2] == ["count"] and not any(word.startswith("--log") for word in words):
        return "nothing is kept of a count without --log FILE"
    if words[1] not in MEASURING or "--recorded" in words:
        return "nothing was measured"
    again = shlex.join(word for word in words if word != FRESH)
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
