"""The page in a real browser, without a network."""

import html
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from physsm.report.page import render_page, write_page
from tests.report.parsed import ParsedPage
from tests.report.sample import sample_contents
from tests.report.test_page import HOSTILE, rename_everything

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium, which is not installed")


def browse(page: Path, *options: str) -> str:
    """Run the browser on a page; what it writes to standard output."""
    assert BROWSER
    command = [
        *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={page.parent / 'profile'}",
        *options,
        page.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=True).stdout


def test_the_browser_sees_the_page_that_was_written(tmp_path: Path):
    path = tmp_path / "report.html"
    write_page(sample_contents(), path)
    seen = ParsedPage(browse(path, "--dump-dom"))
    written = ParsedPage(path.read_text(encoding="utf-8"))
    assert seen.text == written.text
    assert [tag for tag, _ in seen.elements] == [tag for tag, _ in written.elements]
    assert seen.values("id") == written.values("id")


def tags_with_names(folder: Path, name: str) -> list[str]:
    """The elements that the browser sees where this is the name of everything."""
    path = folder / "named.html"
    write_page(rename_everything(sample_contents(), name), path)
    return [tag for tag, _ in ParsedPage(browse(path, "--dump-dom")).elements]


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> list[str]:
    return tags_with_names(tmp_path_factory.mktemp("plain"), "plain")


@pytest.mark.parametrize("name", HOSTILE[:4])
def test_hostile_names_add_no_elements(tmp_path: Path, name, plain):
    hostile = tags_with_names(tmp_path, name)
    assert [tag for tag in hostile if tag != "span"] == [tag for tag in plain if tag != "span"]


def test_a_screenshot_shows_figures_in_their_colours(tmp_path: Path):
    path = tmp_path / "report.html"
    write_page(sample_contents(), path)
    browse(path, f"--screenshot={tmp_path / 'page.png'}", "--window-size=1100,3600")
    pixels = np.asarray(Image.open(tmp_path / "page.png").convert("RGB")).astype(int)
    assert pixels.shape == (3600, 1100, 3)

    def amount(colour: tuple[int, int, int]) -> int:
        return int((np.abs(pixels - np.array(colour)).max(axis=2) <= 6).sum())

    assert amount((255, 255, 255)) > 0.7 * pixels[..., 0].size  # light on ink
    assert amount((0x00, 0x72, 0xB2)) > 2000  # the forecast
    assert amount((0xD1, 0xE6, 0xF1)) > 10_000  # its band: that blue, 18 % on white
    assert amount((0xD5, 0x5E, 0x00)) > 500  # the validation loss


def test_on_a_phone_only_tables_and_figures_scroll(tmp_path: Path):
    """The page in a frame as wide as a phone: the page itself must not be wider."""
    contents = rename_everything(sample_contents(), "x" * 300)
    frames = []
    for page in (render_page(sample_contents()), render_page(contents)):
        frames.append(f'<iframe width=390 height=800 srcdoc="{html.escape(page)}"></iframe>')
    script = """
        onload = () => { document.title = [...document.querySelectorAll("iframe")].map(
            frame => frame.contentDocument.documentElement.scrollWidth).join(" ") };
    """
    path = tmp_path / "phone.html"
    path.write_text(f"<script>{script}</script>{''.join(frames)}", encoding="utf-8")
    dumped = browse(path, "--dump-dom", "--virtual-time-budget=5000")
    widths = re.search(r"<title>([\d ]+)</title>", dumped)
    assert widths, dumped[:300]
    assert all(int(width) <= 390 for width in widths[1].split())
