"""What contractions compute, cost and refuse stands in ``told.txt``, read when an entry changes.

A row is an expression over the names below: ``compiled(equation, sizes)`` tells of one contraction,
``summed(results, sizes)`` of several. Operands hold small whole numbers, so results are exact.
``PYTHONPATH=src:tests python tests/networks/test_told.py`` writes the entries again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded import digest, facts, rows, told, write

import smelt
from smelt.networks.interleaved import split_operands

TABLE = Path(__file__).with_name("told.txt")


def operands(sizes: str, dtype: str = "float32") -> list[np.ndarray]:
    """Return arrays of small numbers, ``2x3 3x4`` for a matrix of 2 rows and one of 3."""
    shapes = [
        tuple(int(n) for n in each.split("x") if n) for each in sizes.replace("-", "").split(" ")
    ]
    made = [
        np.arange(np.prod(s, dtype=int)).reshape(s) * (7 + i) % 5 - 2 for i, s in enumerate(shapes)
    ]
    arrays = [np.asarray(each).astype(dtype) for each in made]
    return [x + 1j * x[::-1] if x.ndim and dtype[0] == "c" else x for x in arrays]


def compiled(
    equation: str,
    sizes: str,
    dtype: str = "float32",
    shapes: Any = None,
    target: str = "host",
    constants: Any = None,
    **options: Any,
) -> list[Any]:
    """Return the tree, the model, the result, and that of each slice."""
    arrays = operands(sizes, dtype)
    fixed = tuple(constants or ())
    given = shapes or [x if i in fixed else x.shape for i, x in enumerate(arrays)]
    more = {"engine": "numpy"} if target == "host" else {}
    made = smelt.compile_einsum(
        equation, given, dtype, target=target, constants=constants, **more, **options
    )
    left = [x for i, x in enumerate(arrays) if i not in fixed]
    result = made(*left) if target == "host" and shapes is None else ()
    told = [str(made.tree), digest(made.tree._repr_html_()), facts(made.model), *result]
    if len(made.slices) > 1:
        told += [made.run_slice(left, each) for each in (0, len(made.slices) - 1)]
        told += [made.sum_slices(left), made.network.sliced]
    return told


def summed(results: Any, sizes: str, dtype: str = "float32", **options: Any) -> list[Any]:
    """Return the costs, the model and the results of sums of contractions."""
    arrays = operands(sizes, dtype)
    made = smelt.compile_einsums(
        results, [x.shape for x in arrays], dtype, engine="numpy", **options
    )
    return [made.sharing, facts(made.model), *made(*arrays)]


def called(*given: Any, sizes: str, dtype: str = "float32", **options: Any) -> Any:
    """Return the result of a call; a letter among the arguments is an operand."""
    arrays = dict(zip("xyz", operands(sizes, dtype), strict=False))
    read = [arrays.get(each, each) if isinstance(each, str) else each for each in given]
    return smelt.einsum(*read, engine="numpy", **options)


NAMES = {
    "compiled": compiled,
    "summed": summed,
    "called": called,
    "operands": operands,
    "split": split_operands,
    "smelt": smelt,
    "np": np,
}


def entry(row: str) -> str:
    """Return the entry of a row."""
    return told(row, NAMES)


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_contractions_tell_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/networks/test_told.py"


if __name__ == "__main__":
    write(TABLE, entry)
