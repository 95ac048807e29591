"""Make .venv ready: create it, install nqbench and what it needs, and PyCUDA where a GPU is.

Run by the Makefile; needs nothing but Python 3.11 or later. Everything comes from pyproject.toml.
A second run with nothing changed returns at once.

    python3 scripts/setup.py [--dev] [--venv DIR]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import setup_gpu

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
NEWER_PYTHONS = ("python3.13", "python3.12", "python3.11")
STAMP = "nqbench-setup.json"
LOG = "nqbench-setup.log"

NO_NETWORK = re.compile(
    r"NewConnectionError|ConnectTimeout|ReadTimeout|name resolution|Network is unreachable"
    r"|ProxyError|Connection refused|Max retries exceeded|\(from versions: none\)"
)
ERROR_LINE = re.compile(r"^(?:ERROR|error):.*$", re.MULTILINE)


class SetupError(Exception):
    """Set-up cannot continue; the text is one sentence for a person."""


def say(text: str) -> None:
    """One line for the person who waits."""
    sys.stderr.write(f"setup: {text}\n")
    sys.stderr.flush()


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0 if .venv is ready, with or without the GPU; 1 with one sentence if not."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--dev", action="store_true", help="also install what the tests need")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv", help="where (default: .venv)")
    options = parser.parse_args(arguments)
    if sys.version_info < OLDEST:
        return run_with_newer_python()
    try:
        prepare(options.venv.resolve(), options.dev)
    except SetupError as error:
        say(str(error))
        return 1
    return 0


def run_with_newer_python() -> int:
    """Start over with a newer Python from the PATH; a sentence if there is none."""
    for name in NEWER_PYTHONS:
        found = shutil.which(name)
        if found:
            return subprocess.call([found, *sys.argv])
    say(
        f"nqbench needs Python 3.11 or later; {sys.executable} is {sys.version.split()[0]} and no"
        " newer one is on the PATH: install one and run 'make PYTHON=/path/to/python3.12 ...'"
    )
    return 1


def prepare(venv: Path, dev: bool) -> None:
    """Bring ``venv`` up to date. Raises ``SetupError``; a GPU that cannot be used is no error."""
    driver = setup_gpu.find_driver()
    extra = setup_gpu.compiler_extra(driver)
    lacks = setup_gpu.lacking() if driver else ""
    key = fingerprint(extra, driver, lacks)
    done = read_stamp(venv)
    if done.get("key") == key and (done.get("dev") or not dev):
        if done.get("gpu") and (not driver or setup_gpu.pycuda_fault(venv)):
            say(str(done["gpu"]))
        return
    dev = dev or bool(done.get("dev"))
    make_venv(venv)
    wanted = ",".join(name for name in ("dev" if dev else "", extra) if name)
    say("installing packages (about a minute)")
    install(venv, ["--editable", f"{ROOT}[{wanted}]" if wanted else str(ROOT)])
    gpu = add_pycuda(venv, driver, lacks) if driver else ""
    stamp = {"key": key, "dev": dev, "gpu": gpu}
    (venv / STAMP).write_text(json.dumps(stamp), encoding="utf-8")
    say(f"{venv} is ready" + ("" if driver else " (no NVIDIA driver here: the simulator is used)"))


def fingerprint(extra: str, driver: setup_gpu.Driver | None, lacks: str) -> str:
    """Digest of all that decides what set-up does; another one means doing it again."""
    digest = hashlib.sha256()
    for path in (ROOT / "pyproject.toml", Path(__file__), Path(setup_gpu.__file__)):
        digest.update(path.read_bytes())
    digest.update(repr((str(ROOT), extra, driver, lacks)).encode())
    return digest.hexdigest()


def read_stamp(venv: Path) -> dict[str, object]:
    """What the last completed set-up wrote; empty if there was none."""
    try:
        stamp = json.loads((venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def make_venv(venv: Path) -> None:
    """Create the environment unless a working one is there."""
    python = venv / "bin" / "python"
    probe = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    if (
        python.exists()
        and subprocess.run([python, "-c", probe], capture_output=True).returncode == 0
    ):
        return
    say(f"creating {venv} with Python {sys.version.split()[0]}")
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(venv)], capture_output=True, text=True
    )
    if made.returncode == 0:
        return
    shown = (made.stdout + made.stderr).strip()
    if "ensurepip" in shown or "No module named venv" in shown:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise SetupError(
            f"Python's venv module is not installed; install it (on Debian and Ubuntu:"
            f" apt-get install python{version}-venv) and run make again"
        )
    raise SetupError(f"{venv} cannot be created: {last_line(shown)}")


def install(venv: Path, what: list[str], environment: dict[str, str] | None = None) -> None:
    """``pip install``; its output goes to a log in the environment. Raises ``SetupError``."""
    command = [str(venv / "bin" / "python"), "-m", "pip", "install"]
    flags = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
    done = subprocess.run(
        [*command, *flags, *what],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment or dict(os.environ),
        cwd=venv,
    )
    log = venv / LOG
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ pip install {' '.join(what)}\n{done.stdout}\n")
    if done.returncode != 0:
        raise SetupError(why_pip_failed(done.stdout, log))


def why_pip_failed(output: str, log: Path) -> str:
    """One sentence out of pip's output."""
    if NO_NETWORK.search(output):
        return (
            "the package index cannot be reached; check the network (or PIP_INDEX_URL, or the"
            f" proxy) and run make again; pip's words are in {log}"
        )
    if "No space left on device" in output:
        return f"the disk is full; free about 2 GB and run make again; pip's words are in {log}"
    errors = ERROR_LINE.findall(output)
    return f"pip failed: {errors[-1] if errors else last_line(output)}; the whole log is {log}"


def add_pycuda(venv: Path, driver: setup_gpu.Driver, lacks: str) -> str:
    """Build PyCUDA into the environment; a sentence if that cannot be done, else empty."""
    problem = driver.problem or (setup_gpu.pycuda_fault(venv) and lacks)
    if not problem and setup_gpu.pycuda_fault(venv):
        say(f"building PyCUDA for CUDA {driver.cuda[0]}.{driver.cuda[1]} (one to two minutes)")
        again = f"the log is {venv / LOG}, and deleting {venv / STAMP} makes the next run try again"
        try:
            setup_gpu.build_pycuda(venv, driver, ROOT / "pyproject.toml", install)
        except SetupError as error:
            problem = f"PyCUDA could not be built: {error}"
        else:
            fault = setup_gpu.pycuda_fault(venv)
            problem = fault and f"PyCUDA was built but does not start ({fault}); {again}"
    if not problem:
        return ""
    sentence = f"no GPU will be used: {problem}"
    say(sentence)
    return sentence


def last_line(text: str) -> str:
    """The last line with anything in it."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no reason given"


if __name__ == "__main__":
    sys.exit(main())
