"""The page in a real browser: it draws, says nothing to the console, and asks nobody for anything.

Every request the browser makes goes through a proxy of ours that answers 404 and keeps a list.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="there is no chromium here; apt-get install chromium"
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
)
OUTSIDE = '<img src="http://outside.example/x.png">'
SCRIPT = "<script>console.error('boom')</script>"


class Proxy(BaseHTTPRequestHandler):
    """Answers 404 to everything, and tells the server who was asked for."""

    def answer(self):
        host = re.sub(r"^https?://", "", self.path).split("/")[0].split(":")[0]
        self.server.hosts.append(host)
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST = do_HEAD = do_CONNECT = answer  # noqa: N815 - the names of http.server

    def log_message(self, *_words):
        """Keep quiet."""


@dataclass
class Visit:
    """What a browser made of a page."""

    dom: str
    console: list[str]
    asked: list[str]  # hosts

    @property
    def clean(self) -> bool:
        return not self.console and not self.asked


@pytest.fixture(scope="module")
def proxy() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        server.hosts = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def visit(proxy, tmp_path):
    def look(text: str, *more: str) -> Visit:
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8")
        proxy.hosts.clear()
        done = subprocess.run(
            [
                BROWSER,
                *FLAGS,
                f"--user-data-dir={tmp_path / 'profile'}",
                f"--proxy-server=127.0.0.1:{proxy.server_port}",
                *(more or ("--dump-dom",)),
                path.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        console = re.findall(r"CONSOLE[:(].*", done.stderr)
        # the browser's own errands: the time, an account, a search engine, a newer version
        own = (".google.com", "update.googleapis.com")
        asked = [host for host in proxy.hosts if not host.endswith(own)]
        return Visit(done.stdout, console, asked)

    return look


@pytest.fixture
def snapshot(visit, tmp_path):
    """Pixels (height, width, 3) from 0 to 1, and the visit that gave them."""

    def shoot(text: str, width: int, *more: str):
        from matplotlib.image import imread

        picture = tmp_path / "shot.png"
        seen = visit(text, f"--screenshot={picture}", f"--window-size={width},2600", *more)
        return imread(picture)[:, :, :3], seen

    return shoot


def test_the_check_can_fail(visit):
    """A page that asks an outsider and complains is caught by the same check."""
    seen = visit(f"<!doctype html><title>x</title>{OUTSIDE}{SCRIPT}")
    assert not seen.clean
    assert "outside.example" in seen.asked
    assert any("boom" in line for line in seen.console)


def test_what_a_stranger_slips_in_is_refused(visit, page_of):
    """The page's own policy stops a script and a request, and the console says so."""
    text = page_of("rising").replace("</main>", f"{OUTSIDE}{SCRIPT}</main>")
    seen = visit(text)
    assert seen.asked == []
    assert sum("Content Security Policy" in line for line in seen.console) == 2
    assert not any('"boom"' in line for line in seen.console)


def test_hostile_names_stay_names(visit, page_of):
    seen = visit(page_of("hostile"))
    assert seen.clean, seen
    assert "<img" not in seen.dom
    assert "<script" not in seen.dom
    assert not re.search(r"<[^>]* on\w+=", seen.dom)
    assert "&lt;img src=x onerror=1&gt;" in seen.dom


@pytest.mark.parametrize("width", [1200, 390])
def test_it_draws_and_fits(snapshot, page_of, width):
    pixels, seen = snapshot(page_of("rising"), width)
    assert seen.clean, seen
    assert pixels.shape[1] == width
    assert pixels.mean() > 0.8
    blue = (abs(pixels - [0.0, 0x72 / 255, 0xB2 / 255]) < 0.05).all(axis=2)
    assert blue.sum() > 100  # dots and bands are there
    assert (pixels[:, -8:] > 0.99).all()  # nothing runs out of the page on the right


def test_something_too_wide_would_be_seen(snapshot, page_of):
    wide = '<header><div style="width: 900px; background: black">x</div>'
    pixels, _ = snapshot(page_of("rising").replace("<header>", wide), 390)
    assert not (pixels[:, -8:] > 0.99).all()


def test_it_is_dark_where_dark_is_wanted(snapshot, page_of):
    pixels, seen = snapshot(page_of("rising"), 800, "--blink-settings=preferredColorScheme=0")
    assert seen.clean, seen
    assert pixels.mean() < 0.3
