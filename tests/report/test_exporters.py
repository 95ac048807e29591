"""Exporters: what goes in comes out, whatever characters it holds."""

from __future__ import annotations

import csv
import io
import math
import re

import pytest

from nqbench.analysis.data.estimate import Estimate
from nqbench.errors import StudyError
from nqbench.report.exporters import EXPORTERS, exporter, latex_escape
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
    time = ("time_s", "time_s_low", "time_s_high")
    assert [float(first[name]) for name in time] == [0.0123456, 0.0123, 0.0124]
    assert [second[name] for name in ("what", "time_s_low", "count")] == [NASTY, "", "0"]
    assert [third[name] for name in ("time_s", "ratio", "count")] == [""] * 3
    assert (first["count"], third["run_device"]) == ("1234567", "H100 (cuda:0)")


def test_a_reader_by_name_loses_no_column() -> None:
    columns = tuple(Column(name) for name in ("device", "command", "a b", "a_b"))
    own = Table("t", "T", columns, (("mine", "made", "1", "2"),), SOURCE)
    (row,) = csv.DictReader(io.StringIO(exporter("csv")(own)))
    made = {"device": "mine", "command": "made", "a_b": "1", "a_b_2": "2"}
    source = {"run_device": "H100 (cuda:0)", "provenance": "measured, 5 rounds"}
    assert row == made | source | {"command_2": "nqbench run 'a|b.yaml'"}


def unescaped(text: str, character: str) -> int:
    return len(re.findall(rf"(?<!\\){re.escape(character)}", text))


def test_latex_escapes_and_uses_booktabs() -> None:
    escaped = latex_escape(NASTY)
    assert all(unescaped(escaped, c) == 0 and f"\\{c}" in escaped for c in "%_#&$")
    assert "~" not in escaped
    assert r"\textbackslash{}" in escaped
    text = exporter("tex")(table(*ROWS))
    assert all(text.count(rule) == 1 for rule in (r"\toprule", r"\midrule", r"\bottomrule"))
    inside = text.split(r"\endhead")[1].split(r"\bottomrule")[0].strip().splitlines()
    assert len(inside) == len(ROWS)
    assert all(unescaped(line, "&") == 3 and line.endswith(r"\\") for line in inside)
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")


def test_markdown_keeps_its_columns_whatever_a_cell_holds() -> None:
    lines = exporter("md")(table(*ROWS)).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 2 + len(ROWS)
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}
    assert "<script>" not in "\n".join(rows)


def test_people_see_units_intervals_and_how_many_rows_and_a_dash_for_nothing() -> None:
    first, second, third = table(*ROWS).texts()
    assert first[1:] == ["12.35 ms ±0.41%", "0.5000", "1,234,567"]
    assert second[2:] == ["from 0", "0"]
    assert third[1:] == ["\u2013"] * 3
    ((_, lopsided, *_),) = table(("x", Estimate(0.004, 0.002, 0.008, 5), None, None)).texts()
    assert lopsided == "4.000 ms [2.000 ms, 8.000 ms]"
    assert [table(*ROWS[:n]).size for n in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]


def test_a_row_of_another_length_and_an_unknown_format_are_refused() -> None:
    with pytest.raises(ValueError, match="3 cells"):
        table(("a", None, None))
    with pytest.raises(StudyError, match=r"'docx'; known: md, csv, tex, svg, pdf, png, html"):
        exporter("docx")
