"""Assemble the page: one HTML file with its data, styles and scripts, safe for hostile names.

The data is JSON in a block that browsers do not run; every character that could end the block is
escaped. A Content-Security-Policy allows the page's own script and style by their hashes, and no
network and no other script.
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

from smelt.check.report.kinds import COLOURS

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
"""ES modules in dependency order; the page holds them as one script."""

_MODULE_LINES = re.compile(r"^import .*\n|^export ", re.MULTILINE)
_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def page_of(document: dict[str, Any]) -> str:
    """Return the HTML page that shows ``document``: the data, and about 50 kB of scripts and
    styles.
    """
    script, style = _script(), _style()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {"POLICY": policy, "STYLE": style, "SCRIPT": script, "DATA": embedded(document)}
    return re.sub(r"%%([A-Z]+)%%", lambda found: parts[found[1]], _asset("page.html"))


def embedded(document: object) -> str:
    """Return ``document`` as ASCII JSON in which no text can be read as markup."""
    try:
        text = _dumped(document)
    except ValueError:  # NaN or inf, which few documents have; a check up front doubles the time
        text = _dumped(_without_nan_and_inf(document))
    return text.translate(_ESCAPES)


def _dumped(document: object) -> str:
    """Return ``document`` as JSON without spaces; raises ValueError for NaN and infinity."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False)


@cache
def _script() -> str:
    """Return all scripts as one, without their imports and exports."""
    modules = [_MODULE_LINES.sub("", _asset(f"{name}.js")) for name in SCRIPTS]
    return '"use strict";\n' + "\n".join(modules)


@cache
def _style() -> str:
    """Return the style sheet, with the colour of each kind of operators at its end."""
    rules = [
        f".kind-{kind} {{ fill: {colour}; background: {colour}; }}"
        for kind, colour in COLOURS.items()
    ]
    return "\n".join([_asset("page.css"), *rules])


@cache
def _asset(name: str) -> str:
    """Return the text of a file in the folder ``assets``."""
    return (files(__package__) / "assets" / name).read_text("utf-8")


def _hash(text: str) -> str:
    """Return the hash of ``text`` in the notation of a Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _without_nan_and_inf(item: Any) -> Any:
    """Return ``item`` with NaN and infinity replaced by text."""
    if isinstance(item, float):
        return item if math.isfinite(item) else str(item)
    if isinstance(item, dict):
        return {key: _without_nan_and_inf(value) for key, value in item.items()}
    return (
        [_without_nan_and_inf(value) for value in item] if isinstance(item, list | tuple) else item
    )
