"""Split samples into runs of a few rows if the model computes each row independently.

A sample is the input of one run. If its first dim is a batch, its rows can be run in parts, and
each row counts as a sample of calibration data.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel, UsageError
from smelt.ir.cloning import clone_model
from smelt.ir.floats import is_float
from smelt.runtime.interface import Port, Value, interface_of
from smelt.runtime.onnxruntime import OnnxRuntime

Sample: TypeAlias = Sequence[Value]
"""One value per input of the model, in order: the inputs of one run."""

BATCH = 8
"""The most rows of one run if the batch size is open."""

TOLERANCE = 1e-3
"""The largest allowed difference between a part of a batch run alone and in the whole batch.

It is relative to the largest number of the output."""


class Batches:
    """Splits the samples of ``model`` along the batch, if there is one.

    The first dim is a batch if all open first dims of inputs are the same symbol, and if two parts
    of a sample, run alone, give the same rows as the whole. So a time axis is no batch.
    """

    def __init__(self, model: ir.Model) -> None:
        """Find the inputs that may have a batch; the model runs only when ``cut`` needs it."""
        self._model = model
        self._cut = _open_first(interface_of(model).inputs)

    def cut(self, values: Sample, parts: int) -> list[tuple[Sample, int]]:
        """Return ``values`` split into at least ``parts`` runs of at most ``BATCH`` rows.

        Each run comes with its number of rows. A sample without a batch stays one run of one row.
        """
        count = self._rows(values)
        if count is None or not self._has_batch(values, count):
            return [(values, 1)]
        step = max(1, min(BATCH, -(-count // parts)))
        if step >= count:
            return [(values, count)]
        return [
            (self._part(values, start, start + step), min(step, count - start))
            for start in range(0, count, step)
        ]

    def _rows(self, values: Sample) -> int | None:
        """Return the number of rows of all inputs with a batch; None if it differs, or without."""
        pairs = zip(values, self._cut, strict=True)
        sizes = {len(value) for value, cut in pairs if cut and isinstance(value, np.ndarray)}
        return sizes.pop() if len(sizes) == 1 else None

    def _part(self, values: Sample, start: int, stop: int) -> Sample:
        """Return the rows from ``start`` to ``stop`` of ``values``."""
        return [
            value[start:stop] if cut and isinstance(value, np.ndarray) else value
            for value, cut in zip(values, self._cut, strict=True)
        ]

    def _has_batch(self, values: Sample, count: int) -> bool:
        """True if the first dim of ``values`` is a batch, tested on the first sample with rows.

        A sample of one row counts as a batch.
        """
        if count < 2:
            return True
        if self._is_batch is None:
            few = min(count, BATCH)
            self._is_batch = self._rows_are_independent(self._part(values, 0, few), few)
        return self._is_batch

    _is_batch: bool | None = None

    def _rows_are_independent(self, values: Sample, count: int) -> bool:
        """True if two halves of ``values``, run alone, give the same rows as all ``values``."""
        middle = count // 2
        try:
            whole, first, second = (
                self._run(*self._part(values, start, stop))
                for start, stop in ((0, count), (0, middle), (middle, count))
            )
        except (InvalidModel, UsageError):  # the model takes no other number of rows
            return False
        return all(map(_are_rows, whole, first, second))

    @cached_property
    def _run(self) -> OnnxRuntime:
        """An open session of the model."""
        return OnnxRuntime(clone_model(self._model), consume=True, optimized=True, threads=0)


def _are_rows(whole: Value, first: Value, second: Value) -> bool:
    """True if ``whole`` is ``first`` and ``second`` concatenated along axis 0, but for rounding."""
    arrays = [each for each in (whole, first, second) if isinstance(each, np.ndarray)]
    if len(arrays) < 3 or not all(each.ndim for each in arrays):
        return False
    if first.shape[1:] != second.shape[1:]:  # type: ignore[union-attr]
        return False
    both = np.concatenate(arrays[1:])
    if both.shape != arrays[0].shape:
        return False
    if not is_float(both.dtype):
        return bool(np.array_equal(both, arrays[0]))
    numbers = arrays[0].astype(np.float64)
    most = float(np.max(np.abs(numbers), initial=0, where=np.isfinite(numbers)))
    return np.allclose(both.astype(np.float64), numbers, 0, TOLERANCE * most, equal_nan=True)


def _open_first(inputs: Sequence[Port]) -> tuple[bool, ...]:
    """Return for each input whether its first dim is open.

    All are False if the first dims are different symbols, or if the symbol is also the size of
    another axis, since it is no batch then.
    """
    first = [_first_dim(port) for port in inputs]
    names = {name for name in first if name is not None}
    inside = {
        str(dim.value)
        for port in inputs
        for dim in (port.shape or ())[1:]
        if isinstance(dim, ir.SymbolicDim)
    }
    if len(names) != 1 or names & inside:
        return tuple(False for _ in first)
    return tuple(name is not None for name in first)


def _first_dim(port: Port) -> str | None:
    """Return the symbol of the first dim of ``port``; None if it is fixed or missing."""
    if port.kind != "tensor" or not port.shape or not isinstance(port.shape[0], ir.SymbolicDim):
        return None
    return port.shape[0].value
