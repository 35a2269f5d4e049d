"""The page of ``examples/browser`` classifies a drawn digit in Chromium, under its strict policy."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from browser import CHROMIUM, opened
from webassembly import missing_for_wasm

import smelt
from smelt.targets.wasm import wasm

PAGE = Path(__file__).parents[2] / "examples" / "browser"
FILES = ("index.html", "page.mjs", "style.css")
pytestmark = pytest.mark.skipif(
    bool(missing_for_wasm()) or not CHROMIUM, reason=missing_for_wasm() or "needs Chromium"
)
SCREENSHOT = os.environ.get("SCREENSHOT")
"""The file for a picture of the page, for those who want to look at it."""

STROKES = {
    7: [[(70, 60), (210, 60), (120, 230)]],
    0: [[(140, 50), (90, 90), (85, 170), (140, 230), (195, 170), (190, 90), (140, 50)]],
    4: [[(110, 50), (75, 160), (210, 160)], [(170, 110), (165, 235)]],
    3: [[(80, 65), (140, 45), (190, 80), (130, 135), (195, 185), (140, 235), (75, 215)]],
}


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder, with the types of ``.mjs`` and ``.wasm``, and says nothing."""

    extensions_map: ClassVar = {
        **SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, *_: object) -> None:
        """Write no line per request."""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of the page with its compiled model."""
    for file in FILES:
        shutil.copy(PAGE / file, tmp_path)
    artifact = smelt.compile(PAGE / "digits.onnx", target=wasm, name="digits", images="image")
    artifact.save(tmp_path / "model")
    served = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in served) < 200_000
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_a_drawn_digit_is_read(address: str, tmp_path: Path) -> None:
    with opened(tmp_path / "profile") as page:
        page.go(f"{address}index.html")
        for digit, strokes in STROKES.items():
            page.click("#clear")
            for stroke in strokes:
                page.draw("#pad", stroke)
            said = page.ask(
                "new Promise(done => { const wait = () => document.querySelector('li.best')"
                " ? done(document.querySelector('#said').value) : setTimeout(wait, 10); wait(); })"
            )
            assert f"It is a {digit}" in said
        if SCREENSHOT:
            page.screenshot(Path(SCREENSHOT))
        worker = page.ask(
            "import('./model/digits.mjs').then(async ({ loadInWorker }) => {"
            " const model = await loadInWorker();"
            " const { chances } = await model.run({ image: new Uint8Array(64) });"
            " const wrong = await model.run({}).catch((error) => error.why); model.close();"
            " return [chances.length, chances.shape, wrong]; })"
        )
        assert worker == [10, [1, 10], "the input has no default value"]
        assert page.problems == []
