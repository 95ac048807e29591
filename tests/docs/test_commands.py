"""Every command of the documentation runs, in the order of its page; what cannot run here is parsed
and listed with the reason."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from nqbench.cli.app import app
from tests.cli.call import call
from tests.docs.pages import PAGES, ROOT, Command, commands, files

ALL = [(name, command) for name, page in PAGES.items() for command in commands(page)]
NOT_RUN = [(name, c) for name, c in ALL if c.skipped or name.startswith("results")]
LINES = [f"{name}: {command.line[:70]}" for name, command in NOT_RUN]


@pytest.fixture
def folder(tmp_path: Path, undrawn: None) -> Path:
    """A folder like a checkout, with results of its own."""
    for name in ("configs", "experiments", "benchmarks"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "reference").symlink_to(ROOT / "results" / "reference")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


@pytest.mark.parametrize("name", [name for name in PAGES if not name.startswith("results")])
def test_the_commands_run(name: str, folder: Path) -> None:
    for file, text in files(PAGES[name]).items():
        (folder / file).write_text(quick(text), encoding="utf-8")
    for study in folder.glob("examples/*/*.yaml"):
        study.write_text(quick(study.read_text(encoding="utf-8")), encoding="utf-8")
    for command in commands(PAGES[name]):
        if not command.skipped:
            run(command, folder)


def test_the_simulator_runs_from_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGES["nqbench/simulator"].read_text(encoding="utf-8")
    [example] = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    exec(compile(example, "README.md", "exec"), {})
    said = capsys.readouterr().out
    assert said.startswith("16 [")
    assert said.endswith("[]\n")


def quick(study: str) -> str:
    """The same study with little time for each point."""
    return re.sub(r"\b(rounds|budget): \d+s?", lambda m: f"{m[1]}: {MEASURED[m[1]]}", study)


MEASURED = {"rounds": "2", "budget": "100ms"}


def run(command: Command, folder: Path) -> None:
    """Run it as a user would. A failure names the line and what it said."""
    program, *words = command.words
    if program != "nqbench":
        if shutil.which(program):
            subprocess.run(command.words, cwd=folder, check=True, capture_output=True)
        return
    done = call(*words, cwd=folder)
    assert done.code == 0, f"{command.line}\n{done.said}"


@pytest.mark.parametrize("command", [command for _, command in NOT_RUN], ids=LINES)
def test_what_is_not_run_parses(command: Command) -> None:
    program, *words = command.words
    if program == "nqbench":
        parse(words)
    elif program == "make":
        assert f"\n{words[0]}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
    elif command.line.startswith("python -m benchmarks."):
        assert importlib.util.find_spec(words[1]) is not None
    pytest.skip(command.skipped or "tells how a recorded run was made")


def parse(words: list[str]) -> None:
    """Parse without running. Raises as the command line would."""
    group: Any = typer.main.get_command(app)
    if not words[0].startswith("--"):
        group.commands[words[0]].make_context(words[0], words[1:])


def test_mistakes_would_be_found(folder: Path) -> None:
    with pytest.raises(Exception, match="No such option"):
        parse(["run", "configs/quick.yaml", "--devise", "sim"])
    with pytest.raises(KeyError):
        parse(["rum", "configs/quick.yaml"])
    with pytest.raises(AssertionError, match="no study"):
        run(Command("nqbench run my.yaml -d sim --dry-run"), folder)
    of_each = {command.skipped for _, command in ALL}
    assert {"", "needs a GPU", "takes minutes", "installs"} <= of_each


def test_every_command_of_the_program_is_on_a_page() -> None:
    group: Any = typer.main.get_command(app)
    named = {command.words[1] for _, command in ALL if command.words[0] == "nqbench"}
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES.values())
    named |= set(re.findall(r"nqbench ([a-z]+)", text))
    assert set(group.commands) <= named


def test_the_workflow_for_pull_requests(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own steps, on a study in a repository and that study's run; then with a slower kernel."""
    text = PAGES["reading-results"].read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n# kernels.yml.*?\n(.*?)```", text, re.DOTALL)
    steps = [step["run"] for step in yaml.safe_load(block)["jobs"]["kernels"]["steps"][2:]]
    summary = folder / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert call("init", "study", cwd=folder).code == 0
    assert call(*steps[0].replace("new", "reference").split()[1:], cwd=folder).code == 0
    for step in steps:
        run(Command(step), folder)
    assert "--fail-on worse: none" in summary.read_text()
    kernel = folder / "study.cu"
    kernel.write_text(kernel.read_text().replace("alpha * x[i]", "(alpha + 0 * sinf(n)) * x[i]"))
    run(Command(steps[0]), folder)
    assert call(*steps[1].split()[1:], cwd=folder).code == 1
    assert re.search(r"--fail-on worse: \d+ points", summary.read_text())


def test_the_commands_for_assistants(folder: Path) -> None:
    (block,) = re.findall(r"```bash\n(.*?)```", (ROOT / "AGENTS.md").read_text(), re.DOTALL)
    lines = block.splitlines()
    assert len(lines) == 5
    for line in lines:
        run(Command(line.partition("#")[0]), folder)
