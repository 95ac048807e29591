"""Exporters: what goes in comes out, whatever characters it holds."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqbench.analysis.data.estimate import Estimate
from nqbench.errors import StudyError
from nqbench.report.exporters import EXPORTERS, LONG, exporter, latex_escape
from nqbench.report.table import Cell, Column, Source, Table

SOURCE = Source("H100 (cuda:0)", "measured, 5 rounds", "nqbench run 'a|b.yaml'", "ablation")
NASTY = '50% of a_b & {c} $x ~ ^ # \\ <script>alert(1)</script> | `d` "e"'


def table(*rows: tuple[Cell, ...], title: str = "A title") -> Table:
    columns = (
        Column("what"),
        Column("time", "time", spread=True),
        Column("ratio", "ratio"),
        Column("count", "number"),
    )
    return Table("t", title, columns, rows, SOURCE, ("a note",))


ROWS: tuple[tuple[Cell, ...], ...] = (
    ("plain", Estimate(0.0123456, 0.0123, 0.0124, 5), 0.5, 1234567),
    (NASTY, Estimate(2.0), Estimate(math.inf, exact=True), 0),
    ("empty", None, None, None),
)


@pytest.mark.parametrize("name", EXPORTERS)
def test_every_format_names_device_provenance_and_command(name: str) -> None:
    text = exporter(name)(table(*ROWS))
    assert "H100 (cuda:0)" in text
    assert "measured, 5 rounds" in text
    assert re.search(r"nqbench run .{1,8}a.{1,15}b\.yaml", text)


def test_csv_gives_back_every_digit_and_the_bounds() -> None:
    first, second, third = csv.DictReader(io.StringIO(exporter("csv")(table(*ROWS))))
    assert float(first["time_s"]) == 0.0123456
    assert (float(first["time_s_low"]), float(first["time_s_high"])) == (0.0123, 0.0124)
    assert first["count"] == "1234567"
    assert second["what"] == NASTY
    assert second["time_s_low"] == ""
    assert second["count"] == "0"
    assert (third["time_s"], third["ratio"], third["count"]) == ("", "", "")
    assert third["run_device"] == "H100 (cuda:0)"


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=40),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_csv_round_trips_any_text_and_number(text: str, value: float) -> None:
    rendered = exporter("csv")(table((text, None, None, value)))
    (row,) = csv.DictReader(io.StringIO(rendered))
    assert (row["what"], float(row["count"])) == (text, value)


def unescaped(text: str, character: str) -> int:
    return len(re.findall(rf"(?<!\\){re.escape(character)}", text))


def test_latex_escapes_what_it_must() -> None:
    escaped = latex_escape(NASTY)
    for character in "%_#&$":
        assert unescaped(escaped, character) == 0
        assert f"\\{character}" in escaped
    assert "~" not in escaped
    assert r"\textbackslash{}" in escaped


def test_a_reader_by_name_loses_no_column() -> None:
    columns = tuple(Column(name) for name in ("device", "command", "a b", "a_b"))
    own = Table("t", "T", columns, (("mine", "made", "1", "2"),), SOURCE)
    (row,) = csv.DictReader(io.StringIO(exporter("csv")(own)))
    assert (row["device"], row["run_device"]) == ("mine", "H100 (cuda:0)")
    assert (row["command"], row["command_2"]) == ("made", "nqbench run 'a|b.yaml'")
    assert (row["a_b"], row["a_b_2"], row["provenance"]) == ("1", "2", "measured, 5 rounds")


def test_latex_labels_tell_runs_and_devices_apart() -> None:
    sources = [SOURCE, replace(SOURCE, run="quick"), replace(SOURCE, device="H200 (cuda:0)")]
    texts = [exporter("tex")(replace(table(*ROWS), source=s)) for s in sources]
    labels = [re.findall(r"label\{(tab:[a-z0-9.:-]+)\}", text) for text in texts]
    assert labels[0] == ["tab:ablation-h100-cuda-0-t"]
    assert len({str(label) for label in labels}) == len(sources)


def test_latex_uses_booktabs_and_has_as_many_cells_as_columns() -> None:
    text = exporter("tex")(table(*ROWS))
    for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert text.count(rule) == 1
    inside = text.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    assert len(inside) == len(ROWS)
    assert all(unescaped(line, "&") == 3 and line.endswith(r"\\") for line in inside)
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")


def test_latex_sets_long_tables_over_pages() -> None:
    rows = [("x", None, None, i) for i in range(LONG + 1)]
    text = exporter("tex")(table(*rows))
    assert r"\begin{longtable}" in text
    assert r"\begin{table}" not in text


def test_markdown_keeps_its_columns_whatever_a_cell_holds() -> None:
    lines = exporter("md")(table(*ROWS)).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 2 + len(ROWS)
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}
    assert "<script>" not in "\n".join(rows)


def test_people_see_units_and_intervals_and_a_dash_for_nothing() -> None:
    first, second, third = table(*ROWS).texts()
    assert first[1] == "12.35 ms ±0.41%"
    assert first[3] == "1,234,567"
    assert second[2] == "from 0"
    assert second[3] == "0"
    assert third[1:] == ["\u2013"] * 3
    ((_, lopsided, *_),) = table(("x", Estimate(0.004, 0.002, 0.008, 5), None, None)).texts()
    assert lopsided == "4.000 ms [2.000 ms, 8.000 ms]"


def test_a_row_of_another_length_and_an_unknown_format_are_refused() -> None:
    with pytest.raises(ValueError, match="3 cells"):
        table(("a", None, None))
    with pytest.raises(StudyError, match=r"'docx'; known: md, csv, tex, html"):
        exporter("docx")
