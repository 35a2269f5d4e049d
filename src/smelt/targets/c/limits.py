"""The limits of the option ``fit``."""

from __future__ import annotations

import re
from typing import NamedTuple

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}
FORM = re.compile(r"(flash|ram)=(\d{1,12})([KM]?)", re.ASCII)


class Limits(NamedTuple):
    """The bytes of a board; None for no limit."""

    flash: int | None = None
    ram: int | None = None


def limits(text: str) -> Limits | None:
    """Return the limits that ``flash=64K,ram=32K`` states; None if ``text`` has another form."""
    matches = [FORM.fullmatch(part.strip()) for part in text.split(",")]
    found = {match[1]: int(match[2]) * UNITS[match[3]] for match in matches if match}
    return Limits(**found) if len(found) == len(matches) else None
