"""The instructions of each layer, as ``smelt compile`` prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smelt.cli.layout import printable, table


def layers(kernels: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a table of the estimated instructions of each layer, in order of the run.

    Empty if the target knows no costs. Layers without a kernel are left out.
    """
    counted = [each for each in kernels if each.get("instructions")]
    total = sum(each["instructions"] for each in counted)
    rows = [
        (
            f"{each['instructions']:,}",
            f"{each['instructions'] / total:.0%}",
            printable(f"{each['op']} {each['origin']}"),
        )
        for each in counted
    ]
    return table(rows, ("instructions", "share", "layer")).splitlines() if rows else []
