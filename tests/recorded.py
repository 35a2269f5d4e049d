"""Tables of what smelt makes of small graphs: committed, and read when an entry changes.

A line with a graph, ``opset 21: (float[2] x) => (y) { y = Relu(x) }``, is followed by its entry, of
which each room that has such a table says what it holds.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt import operators
from smelt.errors import ErrorList, SmeltError
from smelt.ir import scope, text
from smelt.ir.listing import listing

FLOAT = re.compile(r"-?\d+\.\d+(?:[eE][-+]?\d+)?|-?\d+[eE][-+]?\d+")
"""Numbers that are compared by five digits, because CPUs round the last places differently."""

NUMBERS = re.compile(r"#(\d+)(?:\+(\d+))?")

SHORT = 120
"""The most characters of a value that an entry shows whole."""


def rows(table: Path) -> list[tuple[str, str]]:
    """Return the graphs of ``table`` and their entries."""
    lines = table.read_text(encoding="utf-8").splitlines()
    return list(zip(lines[::2], (line.strip() for line in lines[1::2]), strict=True))


def write(table: Path, entry: Callable[[str], str]) -> None:
    """Compute the entries of ``table`` again."""
    lines = (f"{graph}\n    {entry(graph)}\n" for graph, _ in rows(table))
    table.write_text("".join(lines), encoding="utf-8")


def parsed(row: str) -> ir.Model:
    """Return the model of a row, ``opset N: graph``.

    ``#64`` stands for 64 small whole numbers, and ``#64+1`` for 64 others.
    """
    operators.register_all()
    opset, _, graph = with_numbers(row).partition(": ")
    return text.parse(f"g {graph}", int(opset.removeprefix("opset ")))


def with_numbers(row: str) -> str:
    """Return a row with the numbers that ``#64`` and ``#64+1`` stand for."""
    return NUMBERS.sub(lambda found: _numbers(int(found[1]), int(found[2] or 0)), row)


def _numbers(count: int, start: int) -> str:
    """Return ``count`` numbers from 0 to 63 as a list of ONNX text."""
    return "{" + ", ".join(str((7 * i + start) % 64) for i in range(count)) + "}"


def facts(model: ir.Model) -> str:
    """Return the types of the results, the operators, and a digest of all nodes and types."""
    results = ", ".join(text.type_of(value) for value in model.graph.outputs)
    kinds = Counter(node.op_type for node in scope.nodes(model) if node.op_type != "Constant")
    listed = " ".join(f"{count}*{kind}" for kind, count in kinds.items())
    return f"{results}: {listed} {digest(str(listing(model)))}"


def digest(*lines: str) -> str:
    """Return a short digest of ``lines``, with floats rounded."""
    joined = FLOAT.sub(lambda found: f"{float(found[0]):.5g}", "\n".join(lines))
    return hashlib.sha256(joined.encode()).hexdigest()[:8]


def made_or_refused(make: Callable[[], str]) -> str:
    """Return ``make()``, or the codes and a digest of the errors of smelt that it raises."""
    try:
        return make()
    except SmeltError as error:
        errors = error.errors if isinstance(error, ErrorList) else (error,)
        codes = Counter(each.code for each in errors)
        listed = " ".join(f"{count}*{code}" for code, count in codes.items())
        said = [(each.what, each.why, each.fix, _places(each)) for each in errors]
        return f"{listed} {digest(*map(str, said))}"


def _places(error: SmeltError) -> list[str]:
    """Return the places that ``error`` names, without lines of sources, whose folders differ."""
    return [place for place in error.at if ".py" not in place and "<string>" not in place]


def told(row: str, names: Mapping[str, Any]) -> str:
    """Return what the expression ``row`` gives, or the error of smelt or Python that it raises."""

    def answer() -> str:
        try:
            return told_value(eval(row, {**names}))
        except SmeltError:
            raise
        except Exception as error:  # noqa: BLE001 - any error is what the row shows
            return f"{type(error).__name__}: {str(error)[:60]}"

    return made_or_refused(answer)


def told_value(value: Any) -> str:
    """Return ``value`` as text, a long one by its first characters and a digest."""
    if isinstance(value, ir.Model):
        return facts(value)
    if isinstance(value, np.ndarray):
        numbers = " ".join(map(str, value.ravel().tolist()))
        return f"{value.dtype}{list(value.shape)} {_short(numbers)}"
    if isinstance(value, Mapping):
        return _short(" ".join(f"{key}={told_value(each)}" for key, each in value.items()))
    if isinstance(value, list | tuple):
        return f"({_short(', '.join(map(told_value, value)))})"
    return _short(str(value))


def _short(text: str) -> str:
    """Return ``text`` in one line; if it is long, its beginning and a digest."""
    line = " / ".join(text.split("\n")).strip()
    return line if len(line) <= SHORT else f"{line[:SHORT]}... {digest(text)}"
