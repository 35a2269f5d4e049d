"""Which of ONNX's node tests a target refuses, by operator and reason.

    python -m bench.node_refusals [--target c] [--names]

Each model is compiled as users do, with every input as it is. Nothing is built or run: that the
results are right is for ``tests/targets``. ``--names`` lists the tests of each line.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections import defaultdict

import onnx_ir as ir
from onnx.backend.test.loader import load_model_tests
from rich.console import Console
from rich.table import Table

import smelt
from smelt.errors import SmeltError

_NAMES = re.compile(r"'[^']*'")


def refusals(target: str) -> tuple[int, dict[tuple[str, str], list[str]]]:
    """How many tests there are, and the names of the refused by what is refused and why."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for case in cases:
        try:
            smelt.compile(ir.from_proto(case.model), target=target)
        except SmeltError as error:
            first = getattr(error, "errors", [error])[0]
            what = f"{first.code} {_NAMES.sub('...', first.what)}"
            found[what, _NAMES.sub("...", first.why or "")].append(case.name)
    return len(cases), found


def main() -> None:
    """Print the table, the most frequent reason first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="c")
    parser.add_argument("--names", action="store_true")
    asked = parser.parse_args()
    count, found = refusals(asked.target)
    refused = sum(map(len, found.values()))
    table = Table(title=f"{asked.target} takes {count - refused} of {count} node tests")
    for header in ("refused", "what", "why"):
        table.add_column(header, justify="right" if header == "refused" else "left")
    for (what, why), names in sorted(found.items(), key=lambda item: -len(item[1])):
        table.add_row(str(len(names)), what, "\n".join([why, *(names if asked.names else [])]))
    Console().print(table)


if __name__ == "__main__":
    main()
