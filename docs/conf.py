"""How Sphinx builds these pages (`make docs`): Markdown by MyST, every warning an error."""

import re
from typing import Any

project = html_title = "nqbench"
author = copyright = "The nqbench developers"
extensions = ["myst_nb"]
html_theme = "furo"
exclude_patterns = ["_build"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks are committed with their outputs; a test executes them

OUTSIDE = re.compile(r"(?<!!)\[([^\]]*)\]\((\.\./[^)#]*)[^)]*\)")
"""Links to the repository's other files (not images, which are copied)."""
PAGE = re.compile(r"\]\((\S+\.(?:md|ipynb))\)")


def setup(app: Any) -> None:
    app.connect("source-read", adapt)


def adapt(app: Any, name: str, text: list[str]) -> None:
    """Files outside docs/ are named, not linked; the index's links are the table of contents."""
    del app
    if name == "index":
        text[0] += "\n".join(["```{toctree}", ":hidden:", *PAGE.findall(text[0]), "```"])
    if "/" not in name:
        text[0] = OUTSIDE.sub(lambda link: f"{link[1]} (`{link[2].removeprefix('../')}`)", text[0])
