"""A MkDocs hook: formulas become MathML when the site is built, so that pages load no scripts."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(page_html: str, **_: Any) -> str:
    """Replace each formula of a page."""

    def to_mathml(match: re.Match[str]) -> str:
        display = "block" if match.group(2) == "[" else "inline"
        return convert(html.unescape(match.group(3)).strip(), display=display)

    return _FORMULA.sub(to_mathml, page_html)
