"""Report page: the evaluation of a run as one HTML file, without scripts, fonts or network."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from physsm._errors import RunError
from physsm._whole_files import whole_file
from physsm.report.contents import Contents
from physsm.report.forecasts import forecasts_section, unknowns_section
from physsm.report.markup import brief, count, escape, share
from physsm.report.physics import physics_section
from physsm.report.scores import best_score, scores_section
from physsm.report.training import settings_section, training_section

# Even if a text escaped the escaping, the browser would load and run nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def write_page(contents: Contents, path: Path) -> None:
    """Write the page to a file atomically."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise RunError(f"{path}: the report cannot be written: its name must end in .html")
    page = render_page(contents).encode()
    try:
        with whole_file(path) as file:
            file.write(page)
    except OSError as error:
        raise RunError(f"{path}: the report cannot be written: {error.strerror}") from error


def render_page(contents: Contents) -> str:
    """Page as HTML text; `check_contents` must have checked the contents."""
    title = escape(contents["title"])
    css = (files("physsm.report") / "page.css").read_text(encoding="utf-8")
    sections = [
        _header(contents),
        physics_section(contents["physics"]),
        forecasts_section(contents),
        unknowns_section(contents),
        scores_section(contents),
        training_section(contents["training"]),
        settings_section(contents),
        _warnings_section(contents["warnings"]),
    ]
    body = "\n".join(section for section in sections if section)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{css}</style>
</head>
<body>
{body}
<footer>Made with physsm {escape(contents["version"])}, {escape(contents["created"])}.</footer>
</body>
</html>
"""


def _header(contents: Contents) -> str:
    data = contents["data"]
    facts = {
        "Series": f"{data['series']:,}",
        "Rows": f"{data['rows']:,}",
        "Not measured": share(data["missing_share"]),
        "Median gap": brief(data["median_gap"]),
        "Channels": ", ".join(data["channels"]),
        "Controls": ", ".join(data["controls"]) or "none",
    }
    entries = "\n".join(
        f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items()
    )
    return f"""<header>
<h1>{escape(contents["title"])}</h1>
<p class=summary>{_summary(contents)}</p>
{_question(contents)}<dl class=facts>
{entries}
</dl>
</header>"""


def _question(contents: Contents) -> str:
    question = contents.get("question")
    return "" if question is None else f"<p>{escape(question['sentence'])}</p>\n"


def _summary(contents: Contents) -> str:
    """Summary in one line: model, series, best model, number of warnings."""
    series = count(contents["data"]["series"], "series", "series")
    text = f"{escape(contents['model'])} on held-out measurements of {series}"
    if best := best_score(contents["scores"]):
        row, score = best
        text += f"; best {escape(score.heading)}: {escape(row['model'])}, {brief(row[score.key])}"
    if warnings := contents["warnings"]:
        text += f'; <a href="#warnings">{count(len(warnings), "warning")}</a>'
    return f"{text}."


def _warnings_section(warnings: list[str]) -> str:
    items = "\n".join(f"<li>{escape(warning)}</li>" for warning in warnings)
    body = f"<ul class=warnings>\n{items}\n</ul>" if warnings else "<p>None.</p>"
    return f"<section id=warnings>\n<h2>Warnings</h2>\n{body}\n</section>"
