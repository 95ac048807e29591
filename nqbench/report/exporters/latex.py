"""Tables as LaTeX with booktabs rules."""

from __future__ import annotations

from typing import Final

from nqbench.report.table import Table

_ESCAPES: Final = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    '"': r"\textquotedbl{}",
    "±": r"$\pm$",
    "\u00d7": r"$\times$",
    "µ": r"\textmu{}",
    "\u2013": "--",
    "→": r"$\rightarrow$",
    "\n": " ",
}
LONG: Final = 40
"""Rows above which a table no longer fits a page and is set as ``longtable``."""


def escape(text: str) -> str:
    """Make text safe in a LaTeX document."""
    return "".join(_ESCAPES.get(character, character) for character in text)


class Latex:
    """A ``table`` (or ``longtable``) that needs the packages booktabs, longtable and textcomp."""

    suffix = ".tex"

    def render(self, table: Table) -> str:
        """The whole file, to be read with ``\\input``."""
        spec = "".join("l" if c.kind == "text" else "r" for c in table.columns)
        head = " & ".join(escape(c.heading) for c in table.columns) + r" \\"
        rows = [" & ".join(escape(cell) for cell in row) + r" \\" for row in table.texts()]
        caption = f"{escape(table.title)}. {escape(str(table.source))}."
        label = f"tab:{table.label}"
        command = "% made by: " + table.source.command.replace("\n", " ")
        rules = [r"\toprule", head, r"\midrule"]
        if len(rows) > LONG:
            begin = [
                rf"\begin{{longtable}}{{{spec}}}",
                rf"\caption{{{caption}}}\label{{{label}}} \\",
            ]
            lines = [*begin, *rules, r"\endhead", *rows, r"\bottomrule", r"\end{longtable}"]
        else:
            lines = [
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{caption}}}\label{{{label}}}",
                rf"\begin{{tabular}}{{{spec}}}",
                *rules,
                *rows,
                r"\bottomrule",
                r"\end{tabular}",
            ]
        made = escape(table.source.command)
        notes = [*map(escape, table.notes), rf"Made by \texttt{{{made}}}."]
        block = [r"\par\smallskip\footnotesize", *(f"{note}\\par" for note in notes)]
        if len(rows) > LONG:
            lines += ["{" + block[0], *block[1:], "}"]
        else:
            lines += [*block, r"\end{table}"]
        return "\n".join([command, *lines]) + "\n"
