"""What `nqbench verify` derives again, and that it names each of twenty damages."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nqbench.runs.reading import MANIFEST, RECORDS, SUMS
from nqbench.verify.checks import queens
from nqbench.workloads.counting.known import SOLUTIONS
from scripts.pack_runs import pack
from tests.cli.call import call
from tests.toys import FAKE

STUDY = Path(__file__).with_name("tiny.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with its report."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "study.yaml").write_text(STUDY)
    done = call("run", folder / "study.yaml", "-d", FAKE, "--out", folder / "r", "--no-report")
    assert done.code == 0, done.err
    report = call("report", "r", "-f", "md", "-f", "csv", "-f", "svg", cwd=folder)
    assert report.code == 0, report.err
    return folder / "r"


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy of it elsewhere."""
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def lines_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / RECORDS).read_text().splitlines()]


def write_lines(run: Path, lines: list[dict[str, Any]]) -> None:
    """Without the checksums of lines, as earlier versions wrote them."""
    bare = ({name: v for name, v in line.items() if name != "crc32"} for line in lines)
    (run / RECORDS).write_text("".join(json.dumps(line) + "\n" for line in bare))


def record(change: Callable[[dict[str, Any]], object], number: int = -1) -> Callable[[Path], None]:
    """Change one record, the last if nothing else is said."""

    def damage(run: Path) -> None:
        lines = lines_of(run)
        change(lines[number])
        write_lines(run, lines)

    return damage


def counted(**counters: int) -> Callable[[Path], None]:
    return record(lambda line: line.update(counters=counters))


def manifest(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        data = json.loads((run / MANIFEST).read_text())
        change(data)
        (run / MANIFEST).write_text(json.dumps(data))

    return damage


def edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    """Change the text of a file."""

    def damage(run: Path) -> None:
        (file,) = run.glob(name)
        text = file.read_text()
        assert re.search(old, text)
        file.write_text(re.sub(old, new, text, count=1))

    return damage


def packed(damage: Callable[[Path], object]) -> Callable[[Path], None]:
    """Damage what was packed before."""

    def after(run: Path) -> None:
        pack(run)
        damage(run)

    return after


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def without(round_: int) -> Callable[[Path], None]:
    """A record that is taken out: the file is a valid one."""

    def damage(run: Path) -> None:
        lines = lines_of(run)
        lines.remove(next(line for line in lines if line["round"] == round_))
        write_lines(run, lines)

    return damage


def both(line: dict[str, Any]) -> None:
    line["answer"] = line["expected"] = "39"


def twice(run: Path) -> None:
    """Without the line's checksum."""
    write_lines(run, lines_of(run))
    edit(RECORDS, '"round": 1', '"round": 1, "round": 1')(run)


RUN = (MANIFEST, RECORDS)
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a bit of packed records": (packed(lambda r: flip(r / "records.jsonl.gz")), f"{SUMS} names"),
    "a bit of a packed manifest": (packed(edit(MANIFEST, '"seed": ', '"seed": 1')), "not the file"),
    "records beside packed": (packed(lambda r: (r / "records.jsonl").touch()), "not the file"),
    "no record": (lambda r: (r / "records.jsonl").write_bytes(b""), "has no records"),
    "a packed file is gone": (packed(lambda r: (r / MANIFEST).write_bytes(b"{}")), "not the file"),
    "sums that lead outside": (
        packed(edit(SUMS, "  manifest.json", "  ../copy/../manifest.json")),
        "names '../copy/../manifest.json', which cannot be read: it is not in the folder",
    ),
    "a name of the sums": (packed(edit(SUMS, "manifest.json", "\0")), "embedded null"),
    "a long name": (packed(edit(SUMS, "manifest.json", "x" * 300)), "File name too long"),
    "a torn last line": (
        lambda r: (r / RECORDS).write_bytes((r / RECORDS).read_bytes()[:-9]),
        "torn",
    ),
    "a digit of a record": (edit(RECORDS, '"round":1', '"round":2'), r"jsonl:\d+: .* checksum"),
    "a wrong answer that is ok": (
        record(lambda x: x.update(answer="39")),
        "answer 39; .* is right",
    ),
    "a right answer that is wrong": (record(lambda x: x.update(status="wrong")), "status wrong"),
    "answer and expectation": (record(both), "expected answer of .* is 39, derived again"),
    "a value": (record(lambda x: x.update(value_s=1e-9)), "the value of .* derived again"),
    "no samples": (record(lambda x: x.update(samples_s=[])), "a value and no samples"),
    "one sample more": (record(lambda x: x["samples_s"].extend([1.0, 0.0])), "what ended .* after"),
    "the clause that ended it": (record(lambda x: x.update(ended_by="x")), "what ended .* is x"),
    "a phase": (record(lambda x: x["phases"].update(split=1.0)), "the total of"),
    "throttling hidden": (
        record(lambda x: x["telemetry"].update(clock_reasons=["hw_slowdown"])),
        "has status ok, unlike its clock events",
    ),
    "a reading": (
        record(lambda x: x["telemetry"].update(sm_mhz={"min": 9, "median": 1, "max": 9})),
        "sm_mhz of .* outside of its range",
    ),
    "a level of a record": (record(lambda x: x["point"]["factors"].update(n=8)), "factors of"),
    "a label": (record(lambda x: x["point"].update(label="fast N=7")), "the label of .* is fast"),
    "another device": (record(lambda x: x.update(device="cuda:1")), "cuda:1, which is not the"),
    "a counter": (counted(local_bytes=9, local_sectors=2), "local_bytes .* 9.0, derived again 64"),
    "a part": (counted(barriers=3, **{"barriers@a": 1}), "barriers .* 3.0, derived again 1.0"),
    "less than none": (counted(branches=-1), "branches of .* is -1"),
    "a round twice": (twice, r"jsonl:\d+: it has the key 'round' twice"),
    "a key": (record(lambda x: x.update(key="0" * 20), 8), "1 record: superseded"),
    "a round taken out": (without(2), "round 2 of key .* is missing"),
    "a verification taken out": (without(0), "round 0 of key .* is missing"),
    "a name": (manifest(lambda m: m["device"]["facts"].update(name="H200")), "device is H200, der"),
    "a clock": (manifest(lambda m: m["device"]["identity"].update(base=1.0)), "the key of tiny is"),
    "its rounds": (
        manifest(lambda m: m["protocol"].update(rounds=2)),
        "rounds of the protocol is 2",
    ),
    "fewer rounds": (
        manifest(
            lambda m: (m["protocol"].update(rounds=2), m["study"]["measure"].update(rounds=2))
        ),
        "has round 3, the protocol 2",
    ),
    "a key made up": (
        lambda r: [edit(name, '"key": ?"[0-9a-f]{9}', '"key":"012345678')(r) for name in RUN],
        "the key of tiny is 012345678",
    ),
    "a deep study": (manifest(lambda m: m["study"].update(text="[" * 20_000)), "RecursionError"),
    "a level of the manifest": (
        manifest(lambda m: m["points"][0]["factors"].update(loop="somers")),
        "loop of point 1 of the manifest is somers, derived again branchy",
    ),
    "a point of the manifest": (
        manifest(lambda m: m["points"].pop()),
        "the number of points in the manifest is 7, derived again 8",
    ),
    "the study's text": (
        manifest(lambda m: m["study"].update(text=STUDY.replace("n: [6, 7]", "n: [6]"))),
        "the number of points in the manifest is 8, derived again 4",
    ),
    "a number of a table": (
        edit("report/table-results*.csv", r"(\n[^\n]*?\d)\d", r"\g<1>0"),
        r"report/table-results.*csv:\d+ has",
    ),
    "a cell of a page": (
        edit("report/report.md", "synthetic", "measured"),
        r"report/report.md:\d+ has",
    ),
    "a command": (
        edit("report/report.md", "nqbench report [^ ]+", "nqbench report 'r"),
        "pages: the rest of this check cannot be done: .* No closing quotation",
    ),
    "a figure": (edit("report/*.svg", "</svg>", " </svg>"), r"report/.*svg is not the figure"),
}


def test_a_whole_run_holds_wherever_it_is(run: Path) -> None:
    done = call("verify", run, "--json")
    (found,) = json.loads(done.out)
    assert (done.code, found["holds"]) == (0, True), done.out
    derived = {check["check"]: check["derived"] for check in found["checks"]}
    assert all(derived[name] for name in ("points", "answers", "statistics", "intervals", "pages"))
    left = " ".join(s for check in found["checks"] for s in check["not_derived"])
    assert "there is no SHA256SUMS" in left
    assert "24 measured times: only" in left
    pack(run)
    assert call("verify", run, "-q") == (0, "", "")


def test_another_last_bit_of_a_number_is_no_damage(run: Path) -> None:
    edit("report/table-results*.csv", r"(\.\d{13,}?)\d\b", r"\g<1>0")(run)
    assert call("verify", run, "-q") == (0, "", "")


def test_levels_of_the_command_line_are_not_looked_for_in_the_study(tmp_path: Path) -> None:
    run, study = tmp_path / "r", Path(__file__).with_name("tiny.yaml")
    assert call("run", study, "-d", FAKE, "-a", "n=6", "--out", run, "--no-report").code == 0
    done = call("verify", run)
    assert (done.code, "--axis gave them other levels" in done.out) == (0, True)


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_is_named(name: str, run: Path) -> None:
    damage, words = DAMAGES[name]
    if not name.endswith((" table", " page", " figure", " command")):
        shutil.rmtree(run / "report")  # which takes longest
    damage(run)
    done = call("verify", run)
    assert re.search(words, done.out), done.said
    assert "Traceback" not in done.said
    if "superseded" not in words:  # a run may hold records of earlier versions
        assert done.code == 1


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    done = call("verify", tmp_path)
    assert done.code == 2
    assert "is not a run folder" in done.err


def test_brute_force_agrees_with_the_published_counts() -> None:
    assert [queens(n) for n in range(1, 9)] == [SOLUTIONS[n] for n in range(1, 9)]
