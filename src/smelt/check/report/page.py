"""The page: one file of HTML with its data, styles and scripts, that no name can break out of.

Data is JSON in a block that browsers do not run, with every character escaped that could end the
block. A Content-Security-Policy allows the page's own script and style, by their hashes, and
nothing else: no network, no other script.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from functools import cache
from importlib.resources import files
from typing import Any

SCRIPTS = (
    "dom",
    "model",
    "layout",
    "scene",
    "pane",
    "details",
    "search",
    "graphs",
    "tables",
    "charts",
    "numbers",
    "batch",
    "main",
)
"""ES modules in the order of what they need; the page holds them as one script."""

_MODULE_LINES = re.compile(r"^import .*\n|^export ", re.MULTILINE)
_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def page_of(document: dict[str, Any]) -> str:
    """The page that shows ``document``; its size is that of the data and 50 kB."""
    script, style = _script(), _asset("page.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {"POLICY": policy, "STYLE": style, "SCRIPT": script, "DATA": embedded(document)}
    return re.sub(r"%%([A-Z]+)%%", lambda found: parts[found[1]], _asset("page.html"))


def embedded(document: object) -> str:
    """``document`` as JSON in ASCII in which nothing is markup, whatever its texts are."""
    try:
        text = _dumped(document)
    except ValueError:  # few documents have infinities, and to look for them takes as long again
        text = _dumped(_finite(document))
    return text.translate(_ESCAPES)


def _dumped(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), allow_nan=False)


@cache
def _script() -> str:
    modules = [_MODULE_LINES.sub("", _asset(f"{name}.js")) for name in SCRIPTS]
    return '"use strict";\n' + "\n".join(modules)


@cache
def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _finite(item: Any) -> Any:
    """``item`` with numbers that JSON lacks as text."""
    if isinstance(item, float):
        return item if math.isfinite(item) else str(item)
    if isinstance(item, dict):
        return {key: _finite(value) for key, value in item.items()}
    return [_finite(value) for value in item] if isinstance(item, list | tuple) else item
