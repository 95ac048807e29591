"""``--axis``: other levels in place of the study's, recorded as the study that was run."""

from __future__ import annotations

from pathlib import Path

import pytest

from nqbench.errors import StudyError
from nqbench.study import expand
from nqbench.study.asked import with_axes
from tests.study.fake import SIM

STUDY = Path(__file__).with_name("axes.yaml").read_text(encoding="utf-8")
ZIPPED = "name: s\nzip: {n: [8, 9], depth: [3, 4]}\n"


def written(folder: Path, text: str = STUDY) -> Path:
    file = folder / "s.yaml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("words", "factor", "levels"),
    [
        ([], "n", {"grid": {8, 9}, "alone": {10}}),
        (["n=11,12"], "n", {"grid": {11, 12}, "alone": {11, 12}}),
        (["n=11", "n=12"], "n", {"grid": {11, 12}, "alone": {11, 12}}),
        (["depth=2,4"], "depth", {"grid": {2, 4}, "alone": {6}}),
        (["depth=n - 6"], "depth", {"grid": {2, 3}, "alone": {6}}),
        (["layout=interleaved"], "layout", {"grid": {"interleaved"}, "alone": {"interleaved"}}),
        (["block_size=32,64"], "block_size", {"grid": {32, 64}, "alone": {32, 64}}),
        (["n=8", "block_size=32"], "n", {"grid": {8}, "alone": {8}}),
    ],
)
def test_an_axis_is_replaced_where_the_study_gives_it_else_everywhere(
    tmp_path: Path, words: list[str], factor: str, levels: dict[str, set[object]]
) -> None:
    study = with_axes(written(tmp_path), words)
    found: dict[str, set[object]] = {}
    for point in expand(study, SIM):
        found.setdefault(point.sweep, set()).add(point.factors[factor])
    assert found == levels
    assert study.text == STUDY


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("n", "--axis n: write FACTOR=LEVEL, for example --axis n=15,16"),
        ("n=8,,9", "write FACTOR=LEVEL"),
        ("n=x", "--axis n=x: 'n' takes a whole number from 1 to 27, not 'x'"),
        ("n=99", "'n' is 99, but takes"),
        ("dept=3", "--axis dept=3: there is no factor 'dept'; did you mean 'depth'?"),
        ("layout=paded", "'layout' takes .*; did you mean 'padded'?"),
        ("system=a", "there is no factor 'system'"),
    ],
)
def test_a_wrong_axis(tmp_path: Path, word: str, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        with_axes(written(tmp_path), [word])


def test_an_axis_of_zip_is_not_taken_out_of_its_row(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="depth runs side by side with n under zip"):
        with_axes(written(tmp_path, ZIPPED), ["depth=3"])
