"""Shorten text of a model for the page and escape invisible characters."""

from __future__ import annotations

import re

LIMIT = 300
"""The longest text, in characters, that is shown in full."""

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
"""Control characters, marks of writing direction, and unpaired surrogates."""


def shown(text: str | None, limit: int = LIMIT) -> str:
    """Return ``text`` with invisible characters escaped, cut to about ``limit`` characters."""
    if text is None:
        return "?"
    visible = text[:limit]
    if _UNSEEN.search(visible):
        visible = _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", visible)
    return visible if len(text) <= limit else f"{visible}… ({len(text):,} characters)"
