"""Text of a model as a page may show it: short, and with nothing in it that cannot be seen."""

from __future__ import annotations

import re

LIMIT = 300
"""Characters of a text that are shown."""

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
"""Control characters, what turns the direction of writing, and halves of characters."""


def shown(text: str | None, limit: int = LIMIT) -> str:
    """``text`` with escapes for what is unseen, cut to about ``limit`` characters."""
    if text is None:
        return "?"
    kept = text[:limit]
    if _UNSEEN.search(kept):
        kept = _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", kept)
    return kept if len(text) <= limit else f"{kept}… ({len(text):,} characters)"
