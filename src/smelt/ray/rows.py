"""Pass columns of rows to a model, whose batch size may be fixed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from smelt.errors import Unsupported, UsageError
from smelt.runtime.interface import Port

Columns = Mapping[str, np.ndarray]


def batch_size(
    inputs: Sequence[Port], outputs: Sequence[Port], dims: Mapping[str, int]
) -> int | None:
    """Return the fixed batch size of a model, None if any size works; ``dims`` binds symbols.

    Raises Unsupported E696 unless all ports are tensors with the same number of rows as first dim.
    """
    for port in (*inputs, *outputs):
        if port.kind != "tensor" or port.shape == ():
            raise _no_rows(port, "it is not a tensor whose first dim is the rows")
    firsts = {_first(port, dims): port for port in inputs if port.shape is not None}
    if len(firsts) > 1:
        raise _no_rows([*firsts.values()][1], f"inputs have {' and '.join(map(str, firsts))} rows")
    [size] = firsts or [""]
    return size if isinstance(size, int) else None


def _first(port: Port, dims: Mapping[str, int]) -> int | str:
    """Return the first dim of ``port``: a number if it is static or in ``dims``, else its name."""
    assert port.shape
    first = port.shape[0]
    name = first.value or "" if isinstance(first, ir.SymbolicDim) else first
    return dims.get(name, name) if isinstance(name, str) else name


def _no_rows(port: Port, why: str) -> Unsupported:
    """Return E696 for a port without rows."""
    return Unsupported(
        "E696",
        f"{port.name!r}, {port}, does not have one row for each row of a batch",
        why=why,
        fix="export the model with the batch as first dim of every input and output",
    )


def rows_of(columns: Columns) -> int:
    """Return the number of rows of ``columns``; raises UsageError E697 if columns differ."""
    counts = {name: len(column) for name, column in columns.items()}
    if len(set(counts.values())) > 1:
        lengths = ", ".join(f"{name}: {count}" for name, count in counts.items())
        raise UsageError(
            "E697",
            f"the columns have different numbers of rows: {lengths}",
            why="row n of each column belongs to one sample",
            fix="give columns of equal length",
        )
    return next(iter(counts.values()), 0)


def run_by_rows(
    run: Callable[[Columns], Sequence[np.ndarray]], columns: Columns, size: int | None, pad: bool
) -> list[np.ndarray]:
    """Return the results of ``run`` for all rows, computed in portions of ``size`` rows.

    The last portion is filled up with copies of its last row, and their results are dropped.
    Without any rows, one row of zeros is run and dropped, so that results have their types. Raises
    UsageError E697 for an incomplete portion without ``pad``, Unsupported E696 for a result with
    another number of rows.
    """
    rows = rows_of(columns)
    if size and rows % size and not pad:
        raise UsageError(
            "E697",
            f"{rows} rows are not a multiple of {size}, the batch size of the model",
            fix=f"batch_size={size} in map_batches, or pad=True",
            why="the model is compiled for one batch size",
        )
    parts = [
        _cut(run(_padded(part, size)), rows_of(part), size or max(rows, 1))
        for part in _parts(columns, rows, size)
    ]
    return [
        np.concatenate(pieces) if len(pieces) > 1 else pieces[0]
        for pieces in zip(*parts, strict=True)
    ]


def _parts(columns: Columns, rows: int, size: int | None) -> Iterator[Columns]:
    """Yield the columns in portions of ``size`` rows."""
    step = size or max(rows, 1)
    for start in range(0, max(rows, 1), step):
        yield {name: column[start : start + step] for name, column in columns.items()}


def _padded(columns: Columns, size: int | None) -> Columns:
    """Return the columns filled up to ``size`` rows."""
    goal = size or max(rows_of(columns), 1)
    return {name: _filled(column, goal) for name, column in columns.items()}


def _filled(column: np.ndarray, goal: int) -> np.ndarray:
    """Return ``column`` filled up to ``goal`` rows by its last row, or by zeros if it is empty."""
    if len(column) == goal:
        return column
    last = column[-1:] if len(column) else np.zeros((1, *column.shape[1:]), column.dtype)
    return np.concatenate([column, np.repeat(last, goal - len(column), axis=0)])


def _cut(results: Sequence[np.ndarray], rows: int, run_rows: int) -> list[np.ndarray]:
    """Return the first ``rows`` rows of each result, which must have one row for each row of the
    run.
    """
    for index, result in enumerate(results):
        if result.shape[:1] != (run_rows,):
            what = f"output {index} has the shape {list(result.shape)} for {run_rows} rows"
            why = "the first dim of each output must count the rows"
            raise Unsupported("E696", what, why=why, fix="select other outputs by outputs=")
    return [result[:rows] for result in results]
