"""A real browser for tests: Chromium without a window, spoken to over a pipe.

The DevTools protocol goes over two pipes as JSON that ends in NUL, so nothing but Chromium itself
is needed.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)


PATIENCE = 120
"""Seconds until a browser that says nothing counts as hung."""


class Browser:
    """One page. ``problems`` are errors and warnings of its console, ``requests`` what it asked
    the network for, the page itself left out.
    """

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = to, back
        self._number, self._read = 0, b""
        self.problems: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(1280, 800)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of one command; events that come meanwhile are noted."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if hasattr(self, "_session"):
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]  # type: ignore[no-any-return]
            self._note(answer.get("method", ""), answer.get("params", {}))

    def open(self, path: Path, anchor: str = "") -> None:
        """Load the file at ``path`` and wait until it has drawn itself."""
        self.go(path.as_uri() + anchor)

    def go(self, address: str) -> None:
        """Load the page at ``address`` and wait until it has drawn itself."""
        self.problems, self.requests = [], []
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        self.ask("new Promise(done => { const wait = () => document.body?.dataset.ready"
                 " ? done(1) : setTimeout(wait, 10); setTimeout(done, 60000); wait(); })")  # fmt: skip
        self._wait_for_frames()

    def _wait_for_frames(self) -> None:
        """Wait until the page is on the screen: the mouse hits nothing before its first frame."""
        self.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def ask(self, script: str) -> Any:
        """The value of an expression in the page, awaited if it is a promise."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def click(self, selector: str, index: int = 0) -> None:
        """Press and release the mouse on the middle of an element."""
        x, y = self.ask(
            f"(() => {{ const box = document.querySelectorAll({json.dumps(selector)})[{index}]"
            ".getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def draw(self, selector: str, places: Sequence[tuple[int, int]]) -> None:
        """Move the pressed mouse over ``places``, from the corner of an element."""
        box = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        left, top = self.ask(f"(() => {{ const box = {box}; return [box.x, box.y]; }})()")
        kinds = ["mousePressed", *["mouseMoved"] * (len(places) - 1)]
        for kind, (x, y) in [*zip(kinds, places, strict=True), ("mouseReleased", places[-1])]:
            event = {"x": left + x, "y": top + y, "button": "left", "buttons": 1, "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, **event)

    def press(self, *keys: str) -> None:
        """Press keys by their names; others than these are typed as text."""
        codes = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "/": 191}
        for key in keys:
            if key not in codes:
                self.call("Input.insertText", text=key)
                continue
            text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
            fields = {"key": key, "windowsVirtualKeyCode": codes[key], **text}
            self.call("Input.dispatchKeyEvent", type="keyDown", **fields)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def size(self, width: int, height: int, scale: float = 1, dark: bool = False) -> None:
        """Show pages as on a screen of this size."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, path: Path | None = None) -> bytes:
        """What is seen, as PNG."""
        self._wait_for_frames()
        picture = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        if path is not None:
            path.write_bytes(picture)
        return picture

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            assert select.select([self._back], [], [], PATIENCE)[0], "the browser does not answer"
            piece = os.read(self._back, 1 << 20)
            assert piece, "the browser has ended"
            self._read += piece
        message, _, self._read = self._read.partition(b"\0")
        return json.loads(message)  # type: ignore[no-any-return]

    def _note(self, event: str, facts: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent" and facts.get("type") != "Document":
            self.requests.append(facts["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            self.problems.append(str(facts["exceptionDetails"]))
        elif event in ("Log.entryAdded", "Runtime.consoleAPICalled"):
            entry = facts.get("entry", facts)
            if entry.get("level", entry.get("type")) in ("error", "warning"):
                self.problems.append(str(entry.get("text", entry.get("args"))))


@contextmanager
def opened(profile: Path) -> Iterator[Browser]:
    """A browser with a new profile in the empty folder ``profile``."""
    assert CHROMIUM is not None
    theirs_in, to = os.pipe()
    back, theirs_out = os.pipe()
    # Chromium reads from 3 and writes to 4; what lies there must not be one of the pipes.
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (theirs_in, theirs_out)]
    places = [(os.POSIX_SPAWN_DUP2, high[0], 3), (os.POSIX_SPAWN_DUP2, high[1], 4)]
    silent = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    command = [CHROMIUM, *OPTIONS, f"--user-data-dir={profile}"]
    process = os.posix_spawn(CHROMIUM, command, os.environ, file_actions=[*silent, *places])
    for end in (theirs_in, theirs_out, *high):
        os.close(end)
    try:
        yield Browser(to, back)
    finally:
        os.close(to)
        os.close(back)
        os.kill(process, signal.SIGTERM)
        os.waitpid(process, 0)
