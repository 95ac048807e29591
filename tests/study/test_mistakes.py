"""Every mistake gives one sentence with file:line, what is wrong, and what to write instead.

In each example the line at fault carries the comment ``#!``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nqbench.errors import StudyError
from nqbench.study import expand, load_study
from tests.study.fake import CPU, SIM, points_of

HEAD = "name: s\nn: [10]\n"
BASE = HEAD + "fixed: {depth: 4}\n"
SWEEPS = HEAD + "sweeps:\n"

MISTAKES: dict[str, tuple[str, str]] = {
    # keys
    "unknown key": (HEAD + "matrx: {memory: [shared]} #!", "unknown key 'matrx' 'matrix'?"),
    "factor outside fixed": (SWEEPS + "  - name: a\n    memory: shared #!",
     "unknown key 'memory' factors go under fixed, matrix or zip"),
    "duplicate key": (BASE + "n: [11] #!", "'n' is given twice line 2"),
    "missing name": ("n: [10] #!\nfixed: {depth: 4}", "the study needs the key 'name'"),
    "bad name": ("name: a/b #!\nn: [10]\nfixed: {depth: 4}", "'name' 'a/b' folder"),
    "number as name": ("name: 2010 #!\nn: [10]\nfixed: {depth: 4}", "'name' text 2010 quotes"),
    "same sweep name": (
        SWEEPS + "- {name: a, fixed: {depth: 4}}\n- {name: a, fixed: {depth: 5}} #!",
        "two sweeps are called 'a'",
    ),
    "sweep keys next to sweeps": (
        HEAD + "fixed: {depth: 4} #!\nsweeps:\n- {name: a, fixed: {depth: 4}}",
        "'fixed' next to 'sweeps'",
    ),
    # emptiness
    "nothing to run": ("name: s #!\nn: [10]", "nothing to run 'sweeps'"),
    "empty sweep": (SWEEPS + "  - name: a #!", "the sweep 'a' is empty matrix"),
    "empty level list": (HEAD + "matrix: {depth: []} #!", "'depth' is empty"),
    "no value": (BASE + "where: #!", "'where' has no value"),
    "no sizes": ("name: s #!\nfixed: {depth: 4}", "no sizes give n"),
    "empty range": (HEAD + "matrix: {depth: {range: [6, 2]}} #!", "[6, 2] is empty smaller"),
    # types
    "sweeps a mapping": (HEAD + "sweeps: {name: a} #!", "'sweeps' takes a list not a mapping"),
    "fixed a list": (HEAD + "fixed: [depth, 4] #!", "'fixed' takes keys with values"),
    "float level": (HEAD + "fixed: {depth: 4.5} #!", "'depth' whole numbers 4.5"),
    "yes": (HEAD + "fixed: {memory: yes} #!", "reads yes at 'memory' as a truth value quotes"),
    "clock": (BASE + "measure: {budget: 1:30} #!", "reads 1:30 at 'budget' base 8 or 60"),
    "braces": (BASE + "about: {memory} #!", "'memory' has no value needs quotes: \"{memory}\""),
    "braces first": (BASE + "about: {memory}<4> #!", "begins with a brace about: \"{memory}<4>\""),
    "braces in a list": (HEAD + "systems: [{name: p, command: [x, -n{n}]}] #!", "list \"-n{n}\""),
    "comma": (HEAD + "fixed: {depth: max(4, n)} #!", "comma quotes: depth: \"max(4, n)\""),
    "bracket first": (BASE + "where: [n] == 3 #!", "bracket needs quotes: where: \"[n] == 3\""),
    "quotes inside": (BASE + "where: 'a' == memory #!", "whole text: where: \"'a' == memory\""),
    "sign first": (BASE + "about: @home #!", "sign of YAML needs quotes: \"@home\""),
    "backslash": (BASE + 'about: "\\d+" #!', "escape: single quotes: '\\d+'"),
    "no space": (HEAD + "about:text #!\nwhere: n > 3", "a colon and a space: about: text"),
    "date": (BASE + "about: 2024-01-31 #!", "2024-01-31 a date"),
    "list under fixed": (HEAD + "fixed: {depth: [4, 5]} #!", "'depth' one value matrix"),
    "scalar under matrix": (HEAD + "matrix: {depth: 4} #!", "'depth' takes a list [4]"),
    "nested list": (HEAD + "matrix: {depth: [[4]]} #!", "'depth' list inside a list"),
    "three-ended range": (HEAD + "matrix: {depth: {range: [2, 6, 2]}} #!", "two step:"),
    "range of words": (HEAD + "matrix: {depth: {range: [a, b]}} #!", "two whole numbers"),
    "zero step": (HEAD + "matrix: {depth: {range: [2, 6], step: 0}} #!", "step from 1"),
    "odd range key": (HEAD + "matrix: {depth: {range: [2, 6], by: 2}} #!", "range step 'by'"),
    "odd mapping": (HEAD + "fixed: {blocks: {per_sn: 2}} #!", "'per_sn' 'blocks' 'per_sm'?"),
    "per_sm of zero": (HEAD + "fixed: {blocks: {per_sm: 0}} #!", "per_sm from 1"),
    "unknown kind": ("name: s\nn: {sim: [10], gpu: [12]} #!\nfixed: {depth: 4}",
     "'gpu' is not a kind of device cuda"),
    "system list": (HEAD + "system: [alpha2010.base] #!", "'system' one systems: [...]"),
    "system and systems": (HEAD + "system: alpha2010.base\nsystems: [beta2011.pool] #!",
     "'system' or 'systems', not both"),
    "bad infeasible": (BASE + "infeasible: skipp #!", "'infeasible' 'skip'?"),
    # the same thing twice
    "fixed and matrix": (BASE + "matrix: {depth: [4, 5]} #!",
     "'depth' under matrix and under fixed"),
    "system in matrix too": (HEAD + "system: alpha2010.base\nmatrix: {system: [beta2011.pool]} #!",
     "'system' is given under matrix and under system"),
    "unequal zip": (HEAD + "zip: #!\n  depth: [3, 4]\n  block_size: [32, 64, 128]",
     "zip equal lengths depth has 2 block_size has 3"),
    # external programs
    "program without a command": (HEAD + "systems:\n  - {name: p} #!", "needs the key 'command'"),
    "command for a shell": (HEAD + "systems:\n  - {name: p, command: ./p 8} #!",
     "'command' takes a list of words './p 8' no shell {n}"),
    "n without quotes": (HEAD + "systems:\n  - {name: p, command: [p, {n: x}]} #!",
     "'command' takes a number or text, not a mapping"),
    "pattern": (HEAD + "systems:\n  - {name: p, command: [p], answer: '(' } #!",
     "'answer' is not a regular expression '('"),
    "pattern without a group": (
        HEAD + "systems:\n  - {name: p, command: [p], answer: 1, time: x} #!",
        "'answer' takes text",
    ),
    "pattern of two groups": (HEAD + "systems:\n  - {name: p, command: [p], time: '(.)(.)'} #!",
     "'time' has 2 pairs of parentheses one pair"),
    "unit without a time": (HEAD + "systems:\n  - {name: p, command: [p], unit: ms} #!",
     "'unit' needs a time"),
    "unknown unit": (HEAD + "systems:\n  - {name: p, command: [p], time: '(.)', unit: msec} #!",
     "'unit' 'ms' not 'msec'"),
    "program named as a system": (HEAD + "systems:\n  - {name: cpu.plain, command: [p]} #!",
     "'cpu.plain' is a system name of its own"),
    "two programs of one name": (
        HEAD + "systems:\n  - {name: p, command: [p]}\n  - {name: p, command: [q]} #!",
        "two programs are called 'p'",
    ),
    "factor that is not given": (HEAD + "systems:\n  - {name: p, command: [p, '{depth}']} #!",
     "uses {depth} this sweep does not give gives n {{depth}}"),
    # measuring
    "percent": (BASE + "measure: {target: 0.5} #!", "'target' percentage 0.5%"),
    "large percent": (BASE + "measure: {target: 80%} #!", "at most 50%"),
    "duration": (BASE + "measure: {budget: 10} #!", "'budget' duration 10s"),
    "text samples": (BASE + "measure: {samples: ten} #!", "'samples' whole"),
    # report
    "removed table": (BASE + "report:\n  - {table: scale} #!", "'scale' any more: nqbench count N"),
    "unknown table": (BASE + "report:\n  - {table: result} #!", "no table 'result' 'results'?"),
    "table as figure": (BASE + "report:\n  - {table: heatmap} #!",
     "no table 'heatmap' choose from results"),
    "neither": (BASE + "report:\n  - {of: s} #!", "either {table: NAME}"),
    "foreign option": (BASE + "report:\n  - figure: ranking\n    y: depth #!",
     "figure 'ranking' takes no 'y'"),
    "missing option": (BASE + "report:\n  - {figure: heatmap, x: depth} #!", "'heatmap' needs 'y'"),
    "unknown sweep": (BASE + "report:\n  - {table: results, of: lauch} #!",
     "'of' no sweep 'lauch'"),
    "which sweep": (
        SWEEPS
        + "- {name: a, fixed: {depth: 4}}\n- {name: b, fixed: {depth: 4}}\n"
        + "report:\n  - {table: effects} #!",
        "'effects' needs 'of' a or b",
    ),
    "unknown value": (BASE + "report:\n  - {table: effects, value: bank_conflict} #!",
     "'value' 'bank_conflicts'?"),
    "name of two lines": ('name: "a\\nb" #!\nn: [10]\nfixed: {depth: 4}', r"'name' 'a\nb' folder"),
    "huge size": ("name: s\nn: 99999999999999999999 #!\nfixed: {depth: 4}", "'n' too large"),
    "kind in a kind": ("name: s\nn: {sim: {cuda: [9]}} #!\nfixed: {depth: 4}", "kind once around"),
    "step without range": ("name: s\nn: {step: 2} #!\nfixed: {depth: 4}", "step needs its range"),
    "systems a word": (HEAD + "systems: alpha2010.base #!", "'systems' list [alpha2010.base], not"),
    "min of one number": (HEAD + 'fixed: {depth: "min(n)"} #!', "min needs two numbers"),
    "max of words": (HEAD + """fixed: {depth: "max('4', n)"} #!""", "'4' is not a number"),
    "circle of one": (HEAD + 'fixed: {depth: "depth + 1"} #!', "'depth' in terms of itself"),
    "x twice": (BASE + "report:\n  - {figure: heatmap, x: depth, y: depth} #!",
     "'y' is depth, as 'x' already"),
    "size that is not there": (BASE + "report:\n  - {table: results, n: [10, 12]} #!",
     "'n' size 12 sizes here are 10"),
    "x is not a factor": (BASE + "report:\n  - {figure: line, x: pool} #!",
     "'x' takes a factor 'pool' 'pool_size'?"),
    # names and levels
    "unknown factor": (HEAD + "fixed: {blocksize: 64} #!", "factor 'blocksize' 'block_size'?"),
    "unknown level": (HEAD + "matrix: {memory: [sharde]} #!", "'memory' 'sharde' 'shared'?"),
    "number for a level": (HEAD + "fixed: {memory: 3} #!", "'memory' local, shared 3"),
    "auto not allowed": (HEAD + "fixed: {block_size: auto} #!", "'block_size' whole 'auto'"),
    "per_sm not allowed": (HEAD + "fixed: {depth: {per_sm: 2}} #!", "'depth' not {per_sm: 2}"),
    "level misspelt for a number": (HEAD + "fixed: {blocks: from_job} #!",
     "'blocks' 'from_job' 'from_jobs'?"),
    "block too large": (HEAD + "matrix: {block_size: [64, 2048]} #!", "2048 1 to 1024"),
    "range too large": (HEAD + "matrix: {block_size: {range: [1000, 1030]}} #!", "1025 1 to 1024"),
    "wrong on another device": ("name: s\nn: {sim: [10], cuda: [99]} #!\nfixed: {depth: 4}",
     "n is 99 to 27"),
    "unknown system": (HEAD + "systems:\n  - alpha2010.base\n  - alpha2010.opt1 #!",
     "'alpha2010.opt1' 'alpha2010.opt1_shared'?"),
    # expressions
    "broken expression": (HEAD + 'fixed: {depth: "max(4, n -"} #!', "'depth' not an expression"),
    "name in expression": (HEAD + 'fixed: {depth: "m - 11"} #!', "unknown name 'm'"),
    "function in expression": (HEAD + 'fixed: {depth: "sqrt(n)"} #!', "sqrt() not available"),
    "expression gives a fraction": (HEAD + 'fixed: {depth: "n / 4"} #!', "2.5 // whole"),
    "expression out of range": (HEAD + 'fixed: {depth: "n - 9"} #!', "'depth' is 1 by `n - 9`"),
    "expression divides by zero": (HEAD + 'fixed: {depth: "n // (n - n)"} #!', "no value zero"),
    "expression without its factor": (HEAD + 'fixed: {pool_size: "4 * block_size"} #!',
     "needs 'block_size' fixed or matrix"),
    "circle": (HEAD + 'fixed: {pool_size: "2 * block_size", block_size: "pool_size // 2"} #!',
     "each other"),
    "unknown fact": (HEAD + 'fixed: {block_size: "device.warpsize"} #!',
     "device.warpsize 'warp_size'?"),
    "reaching out": (BASE + "where: n.__class__ == 3 #!", "only device"),
    "single equals": (BASE + "where: n = 10 #!", "== to compare"),
    "ampersands": (BASE + "where: n > 3 && n < 9 #!", "and, or, not"),
    "where without comparison": (BASE + "where: n + 1 #!", "11 true or false"),
    "unquoted level": (BASE + "where: memory == shared #!", "level quotes 'shared'"),
    "unknown derived": (BASE + "where: sharedbytes < 5 #!", "'sharedbytes' 'shared_bytes'?"),
    "hidden unknown name": (BASE + "where: n > 3 or jbos > 4 #!", "'jbos' 'jobs'?"),
    "level in a condition": (BASE + "where: memory != 'globl' #!", "'memory' 'globl' 'global'?"),
    "system in a condition": (
        HEAD + "systems: [alpha2010.base]\nwhere: system != 'alpha2010.bas' #!",
        "'alpha2010.bas' 'alpha2010.base'?",
    ),
    "comparing a word": (BASE + "where: memory < n #!", "'shared' number"),
    "where a mapping": (BASE + "where: {n: 3} #!", "'where' an expression"),
    "exclude a factor": (BASE + "exclude:\n  - {memry: shared} #!", "'memry' 'memory'?"),
    "exclude a level": (BASE + "exclude:\n  - {memory: [shared, globl]} #!", "'globl' 'global'?"),
    "all excluded": (BASE + "where: n > 20 #!", "no point of 1, `n > 20` removes 1"),
    # feasibility
    "infeasible factor": (HEAD + "matrix:\n  memory: [shared, local]\n  layout: [interleaved] #!",
     "layout has no meaning for local memory memory=local skip"),
    "shared memory": (
        HEAD + "fixed: {depth: 2}\nmatrix:\n  memory: [shared]\n  block_size:\n"
        "    - 64\n    - 512 #!",
        "65536 bytes 49152 block_size=512",
    ),
    "board too small": ("name: s\nn:\n  - 10\n  - 4 #!\nfixed: {depth: 2}", "N=4 is below 5"),
    "infeasible system": (BASE + "system: cpu.plain #!", "only n"),
    "dash for a used factor": (HEAD + "matrix: {block_size: ['-']} #!",
     "'block_size' is '-' does not apply 128"),
    "too many points": (
        BASE + "matrix: #!\n  block_size: {range: [1, 1024]}\n  pool_size: {range: [1, 1000]}",
        "1,024,000 combinations 20,000",
    ),
    "too long a range": (HEAD + "matrix: {pool_size: {range: [1, 999999]}} #!", "20,000"),
    # YAML itself
    "syntax": (HEAD + "matrix: {depth: [4, 5}\n", "not valid YAML"),
    "colon in text": (HEAD + "about: memory: shared\n", "quotes: about: \"memory: shared\""),
    "tab": (HEAD + "fixed:\n\tdepth: 4\n", "tab spaces"),
    "second document": (BASE + "---\nname: t\n", "second YAML document"),
    "unknown anchor": (HEAD + "fixed: *nowhere #!", "not valid YAML nowhere"),
    "endless anchor": (HEAD + "matrix: {depth: &a [*a]} #!", "anchor refers to itself"),
    "tag": (HEAD + "fixed: !!python/object:os.system {depth: 4} #!", "YAML tag"),
    "a list": ("- name: s #!\n", "a study is a mapping list"),
    "control character": (HEAD + "about: a\x00b #!", "control character U+0000"),
}  # fmt: skip
FIXED_LINES = {"syntax": 3, "colon in text": 3, "tab": 4, "second document": 4}


@pytest.mark.parametrize("name", MISTAKES)
def test_sentence_and_line(name: str, tmp_path: Path) -> None:
    text, words = MISTAKES[name]
    at = FIXED_LINES.get(name) or text[: text.index("#!")].count("\n") + 1
    with pytest.raises(StudyError) as caught:
        points_of(tmp_path, text)
    message = str(caught.value)
    assert caught.value.place is not None, message
    assert f"study.yaml:{at}: " in message
    for word in words.split():
        assert word.strip(",") in message, message
    assert "\n" not in message
    assert len(message) < len(str(tmp_path)) + 420, "one sentence, not a paragraph"


def test_first_mistake_in_the_file_is_reported(tmp_path: Path) -> None:
    text = "name: s\nn: [10]\nfixed: {depth: 4}\nmeasure: {rounds: 0}\nreprot: [x]\nabuot: x\n"
    with pytest.raises(StudyError, match=r"study\.yaml:4: 'rounds'"):
        points_of(tmp_path, text)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ablatoin.yaml", r"no study file .*ablatoin.yaml; did you mean .*ation"),
        ("nowhere/x.yaml", "no study file"),
        ("", r"is a folder, not a study; .*ablation\.yaml"),
    ],
)
def test_a_path_that_is_no_study(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "ablation.yaml").write_text("name: x")
    with pytest.raises(StudyError, match=said):
        load_study(tmp_path / name)


EXPLODING = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"] + [
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)
]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", r"study\.yaml:1: the file is empty"),
        (b"# only a comment\n---\n", r"study\.yaml:1: the file is empty"),
        (b"name: s\nabout: caf\xe9\n", r"study\.yaml:2: .*UTF-8 text \(byte 0xe9\)"),
        (b"# " + b"x" * 1_000_000, "larger than 1,000,000 bytes"),
        (b"name: " + b"[" * 5000 + b"]" * 5000, "nested too deeply"),
        ("\n".join(EXPLODING).encode(), "more than 100,000 values"),
        (
            "\ufeffname: s\r\nn: 10\r\nfixd: {depth: 4}\r\n".encode(),
            r"study\.yaml:3: unknown key 'fixd'",
        ),
        (b"name: s\nworkload: countin\nn: [10]\nfixed: {depth: 4}", r"study\.yaml:2: .*countin"),
    ],
    ids=range(8),
)
def test_whole_files(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_bytes(content)
    with pytest.raises(StudyError, match=said):
        expand(load_study(path), SIM)


def test_nothing_runs_on_this_device(tmp_path: Path) -> None:
    with pytest.raises(
        StudyError, match=r"study\.yaml:\d+: nothing would run on test CPU: all points \(1\)"
    ):
        points_of(tmp_path, BASE, CPU)
    with pytest.raises(StudyError, match=r"study\.yaml:2: nothing would run: .* 'cpu'"):
        points_of(tmp_path, "name: s\nn: {sim: [10]}\nfixed: {depth: 4}", CPU)
