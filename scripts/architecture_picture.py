"""Draws docs/img/architecture.svg: the parts of Phy-SSM between a table and a forecast.

The picture has its own light background, so that it can be read on a light and on a dark page.
Colours are tints that differ in lightness too; a legend below the picture names them.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import NamedTuple

PICTURE = Path(__file__).parent.parent / "docs" / "img" / "architecture.svg"
WIDTH, HEIGHT = 1100, 470
INK, SOFT = "#222222", "#5c5c5c"
FILLS = {"data": "#ffffff", "learned": "#cfe3f5", "physics": "#f9d9a6", "inferred": "#e2e2e2"}
MEANINGS = {
    "learned": "learned network or weights",
    "physics": "equations: known entries are exact",
    "inferred": "distribution, inferred",
    "data": "table",
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, 'DejaVu Sans Mono', monospace"


class Box(NamedTuple):
    """A part: its place, kind, name and what it does in one or two lines."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    name: str
    words: tuple[str, ...]
    file: str = ""

    def draw(self) -> str:
        """The box with its text in the middle."""
        middle = self.x + self.width / 2
        lines = [
            f'<rect x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}" rx="7" '
            f'fill="{FILLS[self.kind]}" stroke="{INK}" stroke-width="1.3"/>'
        ]
        rows = 1 + len(self.words) + bool(self.file)
        y = self.y + self.height / 2 - 9.5 * (rows - 1) + 5
        lines.append(text(middle, y, self.name, size=15, weight="600"))
        for words in self.words:
            y += 19
            lines.append(text(middle, y, words, size=12.5))
        if self.file:
            lines.append(text(middle, y + 19, self.file, size=11.5, colour=SOFT, font=MONO))
        return "\n".join(lines)


def text(
    x: float,
    y: float,
    words: str,
    *,
    size: float = 12.5,
    weight: str = "400",
    colour: str = INK,
    font: str = FONT,
    anchor: str = "middle",
) -> str:
    """A line of text."""
    return (
        f'<text x="{x:g}" y="{y:g}" font-family="{font}" font-size="{size:g}" '
        f'font-weight="{weight}" fill="{colour}" text-anchor="{anchor}">{escape(words)}</text>'
    )


def arrow(path: str, dashed: bool = False) -> str:
    """An arrow along an SVG path."""
    dashes = ' stroke-dasharray="6 4"' if dashed else ""
    return (
        f'<path d="{path}" fill="none" stroke="{INK}" stroke-width="1.5"{dashes} '
        f'marker-end="url(#head)"/>'
    )


BOXES = (
    Box(22, 170, 128, 92, "data", "Table", ("times, channels,", "controls")),
    Box(196, 170, 148, 92, "learned", "Encoder", ("perceptron, S5 stack",), "encoder.py"),
    Box(390, 170, 156, 92, "inferred", "Inference", ("state at each step:", "Kalman or encoder"),
        "inference.py"),
    Box(592, 170, 176, 92, "physics", "Unit", ("A, B: known entries", "and learned ones"),
        "unit.py"),
    Box(812, 170, 118, 92, "learned", "Decoder", ("state → channel",), "decoder.py"),
    Box(966, 170, 112, 92, "data", "Forecast", ("mean, interval,", "unknowns")),
    Box(592, 32, 176, 62, "physics", "Physics text", ("theta' = omega, ?, …",)),
    Box(592, 312, 176, 66, "learned", "Unknowns  ?",
        ("S5 over states, controls;", "or one constant")),
    Box(196, 312, 350, 66, "learned", "Linear bypass",
        ("linear recurrence of the last rows and controls",), "linear_bypass.py"),
)  # fmt: skip


def picture() -> str:
    """The whole SVG document."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-labelledby="title words">',
        '<title id="title">The parts of Phy-SSM</title>',
        '<desc id="words">A table goes through encoder, inference, unit and decoder to a forecast. '
        "The physics text gives the known entries of the unit, a network the unknown ones. A "
        "linear bypass leads from the table to the forecast around the latent state.</desc>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z" fill="{INK}"/>'
        "</marker></defs>",
        f'<rect x="1" y="1" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="12" fill="#fcfcfb" '
        'stroke="#cfcfcf"/>',
        *(box.draw() for box in BOXES),
        arrow("M150 216 H192"),
        arrow("M344 216 H386"),
        arrow("M546 205 H588"),
        arrow("M592 232 H550"),
        text(569, 196, "z", size=13),
        text(569, 250, "next z", size=11.5, colour=SOFT),
        arrow("M768 216 H808"),
        arrow("M930 216 H962"),
        arrow("M680 94 V166"),
        text(670, 136, "lift: sin, cos, … become states", size=11.5, colour=SOFT, anchor="end"),
        arrow("M666 312 V266"),
        arrow("M694 262 V308"),
        # Beyond the last measurement the unit continues from its own predictions.
        arrow("M706 170 C712 118, 776 118, 752 166", dashed=True),
        text(778, 134, "past the last measurement:", size=11.5, colour=SOFT, anchor="start"),
        text(778, 149, "from its own predictions", size=11.5, colour=SOFT, anchor="start"),
        # The bypass starts at the measurements and adds to the decoder's output.
        arrow("M86 262 V345 H192"),
        arrow("M371 378 V404 H1022 V266"),
        text(860, 396, "channels that measure no state", size=11.5, colour=SOFT),
        *_legend(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _legend() -> list[str]:
    found, x = [], 196.0
    for kind, words in MEANINGS.items():
        found.append(
            f'<rect x="{x:g}" y="428" width="22" height="15" rx="3" fill="{FILLS[kind]}" '
            f'stroke="{INK}" stroke-width="1"/>'
        )
        found.append(text(x + 30, 440, words, size=12.5, anchor="start"))
        x += 62 + 6.6 * len(words)
    return found


if __name__ == "__main__":
    PICTURE.write_text(picture(), "utf-8")
