"""The instructions of each layer, as ``smelt compile`` prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smelt.cli.layout import printable, table


def layers(kernels: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table of the estimated machine instructions of each layer.

    ``kernels`` is that part of report.json, in order of execution. The result is empty if the
    target has no estimates; a layer without a kernel has none either, and is left out.
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
