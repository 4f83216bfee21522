"""Matplotlib figures as inline SVG of one page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from xml.etree import ElementTree

import matplotlib
import matplotlib.style
from matplotlib.figure import Figure

_STYLE = {
    "svg.fonttype": "none",  # text is not converted to paths
    "svg.hashsalt": "physsm",  # makes the SVG reproducible
    "font.family": "DejaVu Sans",  # part of Matplotlib, so that widths do not depend on the host
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.edgecolor": "#8a8a8a",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#ececec",
    "grid.linewidth": 0.7,
    "xtick.color": "#8a8a8a",
    "ytick.color": "#8a8a8a",
    "xtick.labelcolor": "#444444",
    "ytick.labelcolor": "#444444",
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "ytick.major.size": 0,
    "xtick.major.width": 0.7,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}
_REFERENCE = re.compile(r"#([\w.-]+)")


@contextmanager
def drawing() -> Iterator[None]:
    """Context in which figures do not depend on the user's Matplotlib settings."""
    with matplotlib.style.context(["default", _STYLE]), warnings.catch_warnings():
        # The browser has the glyphs; this font is only used to measure text.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)
        yield


def inline_svg(figure: Figure, name: str, label: str) -> str:
    """Figure as an `<svg>` element; call it within `drawing()`.

    Its ids start with `name`, which is unique on the page. `label` describes the figure. Text has
    the font of the page.
    """
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(written.getvalue())
    for element in root.iter():
        _drop_namespaces(element)
    _drop(root, ("metadata", "style"))
    _rename_ids(root, name)
    for text in root.iter("text"):
        text.set("style", re.sub(r"font-family:[^;]*;?\s*", "", text.get("style", "")))
    view = root.get("viewBox", "")
    root.attrib = {"viewBox": view, "role": "img", "aria-label": label}
    title = ElementTree.Element("title")
    title.text = label
    root.insert(0, title)
    # No newlines between elements: they would be most of the size of the file.
    for element in root.iter():
        element.tail = None
        element.text = (element.text or "").strip() or None
        if "d" in element.attrib:
            element.set("d", " ".join(element.attrib["d"].split()))
    return ElementTree.tostring(root, encoding="unicode")


def _drop_namespaces(element: ElementTree.Element) -> None:
    """Remove namespaces: in HTML `<svg>` needs none, and `href` is not in that of xlink."""
    element.tag = element.tag.rpartition("}")[2]
    element.attrib = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}


def _drop(parent: ElementTree.Element, tags: tuple[str, ...]) -> None:
    for child in list(parent):
        if child.tag in tags:
            parent.remove(child)
        else:
            _drop(child, tags)


def _rename_ids(root: ElementTree.Element, name: str) -> None:
    """Rename the ids that are referred to; drop the others, which repeat in each figure."""
    referring = ("href", "clip-path")
    references = [
        match[1]
        for element in root.iter()
        for key in referring
        if (match := _REFERENCE.search(element.get(key, "")))
    ]
    new = {old: f"{name}-{i}" for i, old in enumerate(dict.fromkeys(references), start=1)}
    for element in root.iter():
        if (old := element.attrib.pop("id", None)) in new:
            element.set("id", new[old])
        for key in referring:
            if key in element.attrib:
                element.set(key, _REFERENCE.sub(lambda m: f"#{new[m[1]]}", element.attrib[key]))
