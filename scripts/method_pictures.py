"""The pictures of docs/methods.md: what each method infers, and how it goes on from there."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

FOLDER = Path(__file__).parent.parent / "docs" / "img" / "methods"
INK, SOFT = "#333333", "#8a8a8a"
KINDS = {"data": "#ffffff", "learned": "#cfe3f5", "physics": "#fbe3c0", "drawn": "#e3e3e3"}

ROWS = ("data", "rows of\nthe window")
CHANNELS = ("data", "channels at\nany time")
DECODER = ("learned", "decoder, with\ncode of controls")
START = ("drawn", "start $z_0$")
BACKWARDS = ("learned", "recurrent,\nbackwards")

# Each a list of lanes, which run in parallel, of boxes, which run from left to right.
METHODS = {
    "phy_ssm": [
        [
            ROWS,
            ("learned", "S5 encoder,\nforwards"),
            ("drawn", "state at\neach row"),
            ("physics", "step with known\nand unknown A, B"),
            ("learned", "decoder"),
            CHANNELS,
        ],
        [("learned", "S5 over states\nand controls"), ("learned", "unknown\nentries")],
    ],
    "s5": [
        [
            ROWS,
            ("learned", "S5 encoder,\nforwards"),
            ("drawn", "latent at\neach row"),
            ("learned", "S5 over latents:\nnext latent"),
            ("learned", "decoder"),
            CHANNELS,
        ],
    ],
    "latent_ode": [
        [ROWS, BACKWARDS, START, ("learned", "$z' = f(z)$"), DECODER, CHANNELS],
    ],
    "ode_rnn": [
        [
            ROWS,
            ("learned", "GRU at rows,\n$h' = g(h)$ between"),
            START,
            ("learned", "$z' = f(z)$"),
            DECODER,
            CHANNELS,
        ],
    ],
    "contiformer": [
        [
            ROWS,
            ("learned", "keys, values that\nmove between rows"),
            ("learned", "attention at\nany time"),
            DECODER,
            CHANNELS,
        ],
    ],
    "goku": [
        [
            ROWS,
            BACKWARDS,
            START,
            ("physics", "$z' =$ known$(z; \\theta)$\n$+ f(z)$"),
            DECODER,
            CHANNELS,
        ],
        [("learned", "LSTM, both\nways"), ("drawn", "unknowns $\\theta$")],
    ],
    "pi_vae": [
        [
            ROWS,
            BACKWARDS,
            ("drawn", "start $z_0$,\nauxiliary $a$"),
            ("physics", "$z' =$ known$(z; \\theta)$\n$+ f(z, a)$"),
            DECODER,
            CHANNELS,
        ],
        [
            ("learned", "cleaned of what\n$a$ explains"),
            ("learned", "LSTM, both\nways"),
            ("drawn", "unknowns $\\theta$"),
        ],
    ],
    "sdvae": [
        [
            ROWS,
            BACKWARDS,
            ("drawn", "start $q, p$"),
            ("learned", "Hamilton's equations\nof $V(q)$, leapfrog"),
            DECODER,
            CHANNELS,
        ],
    ],
    "ode2vae": [
        [
            ROWS,
            BACKWARDS,
            ("drawn", "start $s, v$,\nweights of $f$"),
            ("learned", "$s' = v$\n$v' = f(s, v)$"),
            ("learned", "decoder\nof $s$"),
            CHANNELS,
        ],
    ],
    "aphynity": [
        [
            ROWS,
            BACKWARDS,
            START,
            ("physics", "$z' =$ known$(z; \\theta)$\n$+$ small $f(z)$"),
            DECODER,
            CHANNELS,
        ],
    ],
    "sindy": [
        [
            ("data", "all training\nrows"),
            ("learned", "sparse regression\nof what is missing"),
            ("physics", "$z' =$ known$(z)$\n$+ \\sum c_j \\phi_j(z)$"),
            ("learned", "start and unknowns\nof the last rows"),
            CHANNELS,
        ],
    ],
}
WIDTH, HEIGHT, GAP = 1.62, 0.62, 0.34


def draw(lanes: list[list[tuple[str, str]]]) -> Figure:
    """One method."""
    columns = max(len(lane) for lane in lanes)
    size = (columns * (WIDTH + GAP) + 0.1, len(lanes) * (HEIGHT + 0.3) + 0.05)
    figure, axes = plt.subplots(figsize=size)
    axes.set_xlim(0, size[0])
    axes.set_ylim(-size[1], 0)
    axes.axis("off")
    for depth, lane in enumerate(lanes):
        y = -0.12 - depth * (HEIGHT + 0.3)
        for place, (kind, text) in enumerate(lane):
            x = 0.1 + (place + (depth > 0)) * (WIDTH + GAP)
            axes.add_patch(
                FancyBboxPatch(
                    (x, y - HEIGHT),
                    WIDTH,
                    HEIGHT,
                    boxstyle="round,pad=0,rounding_size=0.08",
                    facecolor=KINDS[kind],
                    edgecolor=INK if kind != "data" else SOFT,
                    linewidth=0.8,
                )
            )
            axes.text(
                x + WIDTH / 2,
                y - HEIGHT / 2,
                text,
                ha="center",
                va="center",
                color=INK,
                fontsize=8.5,
            )
            if place:
                axes.add_patch(
                    FancyArrowPatch(
                        (x - GAP, y - HEIGHT / 2),
                        (x, y - HEIGHT / 2),
                        arrowstyle="-|>",
                        mutation_scale=8,
                        color=INK,
                        linewidth=0.8,
                        shrinkA=1,
                        shrinkB=1,
                    )
                )
    _join(axes, lanes)
    return figure


def _join(axes: Axes, lanes: list[list[tuple[str, str]]]) -> None:
    """A second lane begins at what the first reads and ends in its fourth box."""
    if len(lanes) < 2:
        return
    bend = {"arrowstyle": "-|>", "mutation_scale": 8, "color": INK, "linewidth": 0.8}
    step, low = WIDTH + GAP, -0.12 - HEIGHT - 0.3
    axes.add_patch(
        FancyArrowPatch(
            (0.1 + WIDTH / 2, -0.12 - HEIGHT),
            (0.1 + step, low - HEIGHT / 2),
            connectionstyle="angle,angleA=-90,angleB=180,rad=6",
            **bend,
        )
    )
    above = (0.1 + 3 * step + WIDTH / 2, -0.12 - HEIGHT)
    if len(lanes[1]) == 3:
        axes.add_patch(FancyArrowPatch((above[0], low), above, **bend))
        return
    last = 0.1 + len(lanes[1]) * step + WIDTH
    axes.add_patch(
        FancyArrowPatch(
            (last, low - HEIGHT / 2),
            above,
            connectionstyle="angle,angleA=0,angleB=-90,rad=6",
            **bend,
        )
    )


if __name__ == "__main__":
    mpl.rcParams.update({"svg.hashsalt": "methods", "svg.fonttype": "path", "font.size": 9})
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, lanes in METHODS.items():
        figure = draw(lanes)
        figure.savefig(
            FOLDER / f"{name}.svg", bbox_inches="tight", pad_inches=0.05, metadata={"Date": None}
        )
        plt.close(figure)
