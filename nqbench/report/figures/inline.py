"""A figure as SVG for the inside of a page: small, with names of its own, with values to point at.

Matplotlib writes each SVG as a file of its own: several in one page would share ids, and
coordinates have more digits than any screen shows.
"""

from __future__ import annotations

import io
import re
from collections.abc import Container, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

from nqbench.report.exporters import readable
from nqbench.report.figures.style import DARK, Drawing, dark, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer

for _prefix, _name in (("", "2000/svg"), ("xlink", "1999/xlink")):
    ElementTree.register_namespace(_prefix, f"http://www.w3.org/{_name}")
_SVG: Final = "{http://www.w3.org/2000/svg}"
_ATTRIBUTE: Final = re.compile(r'(?<==")[^"<>]*(?=")')
_NUMBER: Final = re.compile(r"-?\d+\.\d+")
_OF_THE_PAGE: Final = re.compile(r"font-family: 'DejaVu Sans';? ?")
"""What the page's own style says once for all figures."""
_NAME: Final = re.compile(r'( id="|(?<=href=")#|(?<=url\()#)')
_COLOUR: Final = re.compile(r"#([0-9a-f]{6})\b")
_USED: Final = re.compile(r"var\(--c([0-9a-f]{6})\)")


def palette(page: str) -> str:
    """The colours of a page's figures in the light and in the dark, as properties of CSS."""
    found = sorted(set(_USED.findall(page)))
    return " ".join(f"--c{c}: light-dark(#{c}, {dark(f'#{c}')});" for c in found)


def inline_svg(drawing: Drawing, name: str, *, titled: bool = False) -> str:
    """The figure as an ``svg`` element whose ids begin with ``name``; its marks say their values.

    It has a title and a description for those who cannot see it. Its title, unless ``titled``, and
    its footer are left out: the page has them. Its colours are properties of the page
    (:func:`palette`), except those of labelled cells.
    """
    values = dict(_label_marks(drawing))
    written = io.StringIO()
    cut = [0.0, 0.0]
    for i, (part, height_in) in enumerate(drawing.around):
        if i or not titled:
            cut[i] = 72 * height_in
            part.set_visible(False)
    with styled():
        drawing.figure.savefig(written, format="svg", metadata={"Date": None})
    for part, _ in drawing.around:
        part.set_visible(True)
    root = ElementTree.fromstring(readable(written.getvalue()))
    width, height = (float(v) for v in root.attrib["viewBox"].split()[2:])
    root.set("viewBox", f"0 {cut[0]} {width} {height - sum(cut)}")
    for aside in root.findall(f"{_SVG}metadata") + root.findall(f"{_SVG}defs[{_SVG}style]"):
        root.remove(aside)  # a date, the page's own style
    cells = {e for g in root.iter() if g.get("id", "").startswith("cell-") for e in g.iter()}
    for group in root.iter(f"{_SVG}g"):
        labels = values.get(group.get("id", ""), [])
        marks = list(group.iter(f"{_SVG}use")) or list(group.iter(f"{_SVG}path"))
        if len(marks) == len(labels):  # else not every value is drawn
            for mark, label in zip(marks, labels, strict=True):
                ElementTree.SubElement(mark, f"{_SVG}title").text = label
    for element in root.iter():
        if fill := element.attrib.pop("fill", ""):  # an attribute knows no properties
            element.set("style", f"fill: {fill}")
        known = DARK if element in cells else None
        if style := element.get("style"):
            element.set("style", _COLOUR.sub(partial(_property, known), style))
        if f"#{element.get('id')}" not in written.getvalue():  # nothing refers to it
            element.attrib.pop("id", None)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img"}
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    for place, (tag, said) in enumerate((("title", drawing.title), ("desc", drawing.alt))):
        described = ElementTree.Element(f"{_SVG}{tag}", {"id": tag})
        described.text = said
        root.insert(place, described)
    text = ElementTree.tostring(root, encoding="unicode")
    text = re.sub(r"(?<=>)\s+(?=<)", "", _NAME.sub(rf"\1{name}-", text))
    return _ATTRIBUTE.sub(_shorter, text)


def _shorter(found: re.Match[str]) -> str:
    """An attribute with numbers of two digits, without what the page says."""
    number = _NUMBER.sub(lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), found[0])
    return _OF_THE_PAGE.sub("", number).strip()


def _label_marks(drawing: Drawing) -> Iterator[tuple[str, list[str]]]:
    """Name each series of dots with intervals and each labelled cell; yields the name and a text
    per mark."""
    from matplotlib.container import ErrorbarContainer

    cells = (cell for ax in drawing.figure.axes for cell in ax.patches)
    for number, cell in enumerate(cells):
        if (label := str(cell.get_label())) and not label.startswith("_"):
            cell.set_gid(f"cell-{number}")
            yield f"cell-{number}", [label]
    found = ((ax, one) for ax in drawing.figure.axes for one in ax.containers)
    for number, (ax, container) in enumerate(found):
        if isinstance(container, ErrorbarContainer) and container.lines[0] is not None:
            container.lines[0].set_gid(f"values-{number}")
            yield f"values-{number}", _labels(ax, container)


def _labels(ax: Axes, container: ErrorbarContainer) -> list[str]:
    """``series: value [low, high]`` of each dot that is drawn, or what was said of it."""
    if said := getattr(container, "said", ()):
        return list(said)
    way, values = getattr(container, "shown", ("y", ()))
    write = ax.format_xdata if way == "x" else ax.format_ydata
    series = str(container.get_label() or "")
    head = f"{series}: " if series and not series.startswith("_") else ""
    labels = []
    for value in (one for one in values if one.value == one.value):  # NaN is not drawn
        whole = value.low is not None and value.high is not None and value.low < value.high
        interval = f" [{write(value.low)}, {write(value.high)}]" if whole else ""
        labels.append(f"{head}{write(value.value)}{interval}")
    return labels


def _property(known: Container[str] | None, found: re.Match[str]) -> str:
    """The property of a colour; the colour itself if it is not ``known``."""
    return found[0] if known is not None and found[0] not in known else f"var(--c{found[1]})"
