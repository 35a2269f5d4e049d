"""What ``--input`` and ``--inputs`` give, or why not, stands in ``input_values.txt``.

A row is an expression over the names below: ``given`` parses options, for a model with the inputs
of ``GRAPH``, ``arguments`` for a function. They read the files of ``FILES``.
``PYTHONPATH=src:tests python tests/cli/test_input_values.py`` writes the entries again.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from recorded import parsed, rows, told, write

from smelt.cli.input_values import check_samples, read_inputs, read_samples
from smelt.runtime.array_files import arrays_of, write_npz
from smelt.runtime.interface import interface_of
from smelt.runtime.named_inputs import MadeUp, choose_inputs

TABLE = Path(__file__).with_name("input_values.txt")
GRAPH = "opset 20: (float[N,2] x, float[N] z, int64 i) => (float[N,2] y) { y = Neg(x) }"
X = np.arange(6, dtype=np.float32).reshape(3, 2)


def write_files() -> None:
    """Write the files that rows name into the current folder."""
    np.save("x.npy", X)
    np.save("f.npy", np.asfortranarray(X))
    np.save("i.npy", np.int64(3))
    np.save("o.npy", np.array([{}], object), allow_pickle=True)
    np.savez("m.npz", x=X, z=X[:, 0])
    np.savez("one.npz", x=X)
    np.savez("none.npz")
    np.savez("q.npz", q=X)
    for name in ("x", "z", ""):
        Path(f"{name or 'unnamed'}.pb").write_bytes(
            onnx.numpy_helper.from_array(X[:, 0] if name == "z" else X, name).SerializeToString()
        )
    Path("short.npy").write_bytes(Path("x.npy").read_bytes()[:-4])
    Path("long.npy").write_bytes(Path("x.npy").read_bytes() + b"1234")
    Path("later.npy").write_bytes(Path("x.npy").read_bytes().replace(b"\x01\x00", b"\x07\x00", 1))
    Path("bad.npz").write_bytes(b"PK")
    Path("bad.pb").write_bytes(b"\xff\xff")
    Path("empty.npy").write_bytes(b"")
    Path("x.txt").write_text("1 2", encoding="utf-8")
    Path("zeros").mkdir()
    with Path("w.npz").open("wb") as stream:
        write_npz(stream, arrays_of("s", [X, [X, 3], "no array"]) | {"t": np.array(["a"], object)})


def chosen(graph: str, sizes: Any = None, rest: str = "zeros", **values: Any) -> list[Any]:
    """Return the values that the inputs of a graph get, if the user gives some of them."""
    interface = interface_of(parsed(f"opset 20: {graph}"))

    def make(bound: Any, seed: int, mode: Any) -> list[Any]:
        """Return the sizes as values."""
        return [f"{port.name} {seed} {sorted(bound.items())}" for port in interface.inputs]

    found = choose_inputs(interface, values, make, sizes, MadeUp(rest, 5))  # type: ignore[arg-type]
    return [found.values, found.sizes, found.made_up]


def given(*items: str, files: Any = None, function: bool = False) -> list[Any]:
    """Return what options give, and the values that a model of ``GRAPH`` gets."""
    interface = interface_of(parsed(GRAPH))
    values = read_inputs(items, files, function=function)
    names = values.by_name(interface)
    if function:
        return [names, values.specs, len(values.ordered)]

    def make(sizes: Any, seed: int, mode: Any) -> list[Any]:
        """Return recognizable values."""
        rows = sizes["N"]
        return [np.full((rows, 2), seed, "f"), np.full(rows, seed, "f"), np.int64(seed)]

    chosen = choose_inputs(interface, names, make, rest=MadeUp("zeros"))
    return [names, chosen.values, chosen.sizes, chosen.made_up]


def arguments(function: Callable[..., Any], *items: str, files: Any = None) -> list[Any]:
    """Return the arguments of a function that options give."""
    return read_inputs(items, files, function=True).arguments(function, "the function")


NAMES = {
    "given": given,
    "chosen": chosen,
    "MadeUp": MadeUp,
    "arguments": arguments,
    "samples": read_samples,
    "check": check_samples,
    "abs": abs,
    "max": max,
    "np": np,
}


def entry(row: str) -> str:
    """Return the entry of a row."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_files()
        return told(row, NAMES)


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_options_give_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/cli/test_input_values.py"


if __name__ == "__main__":
    write(TABLE, entry)
