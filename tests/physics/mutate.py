"""Endless variations of good texts: what a tired user, or a hostile one, might hand over."""

from __future__ import annotations

import random

from physsm.physics.read import system_names, system_text

# One text that uses every feature of the language.
EVERYTHING = """# all of the language
control u, w hold linear
constant g = 9.81, half = min(1/2, 3)
x' = y + [u*w]*? + ?(x, y*z, sin(x)) + min(x, 4, y)*abs(z)*x - [sign(y)*tanh(u)]*?drag
y' = -g*sin(x) - half*y**3 + ?drag*[y]*y + ?gain*u - 2e-1*exp(-x/2)*z
z' = (?drag*sqrt(x + 2)
      - log(z)/3 + 1/(1 + x**2) + tan(y)*w + z**0.5 + cos(2*x) + pi)
?drag >= 0
0 <= ?gain <= 2*g
unknown ?drag, ?scale, ?bias constant ~ 3.5
unknown ?gain per series ~ g/10
state x >= -1, 0 <= z <= 10
observe x, z, level = ?scale*max(x, y) + ?bias - u, w2 = clip(y, -1, 1)*?drag
unit x = m, u = V
"""

TOKENS = [
    *"?()[]+-*/,='.<>_#\\\"{};:@!%^&|~ \t\n\x00\r",
    *(
        "**",
        "//",
        "==",
        "<=",
        ">=",
        "''",
        "?(",
        "[?",
        "])",
        "9**9**9",
        "1e999",
        "1e-999",
        "0",
        "007",
    ),
    *(
        "1_0",
        "0x1f",
        "1j",
        "x",
        "y",
        "S",
        "I",
        "theta",
        "omega",
        "u",
        "torque",
        "?beta",
        "?a",
        "??",
    ),
    *("sin(", "cos(x)", "tan", "exp(exp(exp(x)))", "log(0)", "sqrt(-1)", "x**-1", "x**0.5", "1/0"),
    *("min(", "max(x, 0)", "abs(", "sign(y)", "tanh(u)", "clip(x, 0, 1)", "[abs(x)]"),
    *("~", "~ 2", "hold linear", " hold ", "observe y2 = ", "= ?scale*x", "constant ~ 1"),
    *("x' = ", "control ", "constant ", "observe ", "state ", "unknown ", "unit ", "per series"),
    *("lambda", "import", "__import__('os')", "x.y", "x[0]", "(x for x in y)", "...", "*x", "**x"),
    *(
        "θ",
        "ω",
        "−",
        "é",
        "\u2028",
        "\ufeff",
        "１",
        "x\u0301",
        "(" * 50,
        "-" * 300,
        "x*" * 120,
        "+1" * 600,
    ),
]


def mutated_texts(seed: int, count: int):
    """Yield `count` texts, the same for the same seed."""
    source = random.Random(seed)
    corpus = [EVERYTHING] * 4 + [system_text(name) for name in system_names()]
    for _ in range(count):
        text = source.choice(corpus)
        for _ in range(source.choice([1, 1, 1, 2, 2, 3, 5, 9])):
            text = _mutate(text, source, corpus)
        yield text


def _mutate(text: str, source: random.Random, corpus: list[str]) -> str:
    at = source.randrange(len(text) + 1)
    end = min(len(text), at + source.choice([1, 1, 2, 3, 8, 30]))
    match source.randrange(8):
        case 0:
            return text[:at] + text[end:]
        case 1 | 2:
            return text[:at] + source.choice(TOKENS) + text[at:]
        case 3:
            return text[:at] + source.choice(TOKENS) + text[end:]
        case 4:
            return text[:end] + text[at:end] + text[end:]
        case 5:
            lines = text.split("\n")
            source.shuffle(lines)
            return "\n".join(lines)
        case 6:
            other = source.choice(corpus)
            return text[:at] + other[source.randrange(len(other)) :]
        case _:
            return text[:at] + chr(source.randrange(32, 127)) + text[end:]
