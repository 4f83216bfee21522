"""A page as a strict parser sees it."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = {"meta", "link", "br", "img", "hr", "input"}


class ParsedPage(HTMLParser):
    """Fails on tags that are not balanced; keeps elements, ids, headings and the visible text."""

    def __init__(self, page: str):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.cells: list[list[str]] = []  # of all tables, row by row
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, attrs)
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert "svg" in self.open, f"<{tag}/> closes itself only within SVG"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.texts.append(data)
        if "td" in self.open or (self.open and "tr" in self.open and "th" in self.open):
            self.cells[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    def values(self, attribute: str) -> list[str]:
        return [attrs[attribute] for _, attrs in self.elements if attribute in attrs]

    def row(self, first: str) -> list[str]:
        """The only table row whose first cell has this text."""
        (row,) = [row for row in self.cells if row[0] == first]
        return row
