"""The inputs on which a model is calibrated, and those held apart to measure its error.

Data come as files, folders, arrays or mappings from names to arrays. Without data, inputs are drawn
at random, and ``Data.note`` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.check.agreement import Dims
from smelt.check.comparison_inputs import ComparisonInputs
from smelt.check.comparison_side import open_side
from smelt.check.random_cases import random_cases
from smelt.check.samples import cases_of
from smelt.errors import UsageError
from smelt.ir.floats import is_float
from smelt.precision.data_files import read_samples
from smelt.runtime.inputs import Mode
from smelt.runtime.interface import Interface, Port, Value, interface_of

Source: TypeAlias = "str | Path | np.ndarray | Mapping[str, Any] | Iterable[Any]"
"""A file, a folder, an array for the only input, arrays by input name, or several of these."""

Sample: TypeAlias = Sequence[Value]
"""One value per input of the model, in order: the inputs of one run."""

FEWEST = 2
"""The fewest samples that can be split: one to calibrate on, and one held apart."""

BATCH = 8
"""The most rows of one run if the batch size is open."""

DRAWN: tuple[Mode, ...] = ("normal", "wide", "sparse")
"""The distributions of drawn inputs; each is drawn for calibration and again to measure errors."""


APART = 1000
"""The distance of the seeds of the two parts of drawn inputs."""


@dataclass(frozen=True)
class Data:
    """Samples for calibration, others held apart to measure errors, and where they are from.

    ``rows`` and ``held_rows`` are the places of the samples' rows in the data as they were given,
    for labels; they are empty for drawn data. ``note`` says in a sentence what the data are.
    """

    calibration: tuple[Sample, ...]
    held_apart: tuple[Sample, ...]
    note: str
    held_rows: tuple[int, ...] = ()
    total_rows: int = 0
    drawn: bool = False


def calibration_data(
    model: ir.Model,
    source: Source | None,
    held: Source | None = None,
    *,
    dims: Dims | None = None,
    seed: int = 0,
) -> Data:
    """Return the data in ``source`` for ``model``, split in two; ``held`` gives the second part.

    Without ``held``, each second run of ``source`` is held apart. Without ``source``, inputs are
    drawn at random at the sizes ``dims``. Raises UsageError E632 for names, types or shapes that
    the model does not take, E617 for unreadable files, E684 for NaN or too few samples.
    """
    if source is None:
        return drawn_data(model, dims=dims, seed=seed)
    interface = interface_of(model)
    runs = _runs_of(interface, source)
    total = sum(count for _, count in runs)
    if held is not None:
        apart = _runs_of(interface, held)
        rows = sum(count for _, count in apart)
        note = f"calibrated on {_counted(total)}, error measured on {_counted(rows)} of their own"
        samples = tuple(sample for sample, _ in runs)
        return Data(samples, tuple(sample for sample, _ in apart), note, tuple(range(rows)), rows)
    if len(runs) < FEWEST:
        raise UsageError(
            "E684",
            "the data hold one sample: none is left to measure the error on",
            why="an error measured on the calibration data would look smaller than it is",
            fix="give at least two samples, or a second file with --held FILE",
        )
    return _split(runs, total)


def drawn_data(model: ir.Model, *, dims: Dims | None = None, seed: int = 0) -> Data:
    """Return random inputs for ``model`` at its largest trial sizes, split in two."""
    side = open_side(model, "model")
    calibration, held = (
        tuple(case.values for case in random_cases(side, side, dims, first, DRAWN))
        for first in (seed, seed + APART)
    )
    note = (
        "no data were given: errors are measured on random inputs, which may be far from those "
        "that the model will see"
    )
    return Data(calibration, held, note, drawn=True)


def held_labels(data: Data, labels: np.ndarray) -> np.ndarray:
    """Return the labels of the held-apart rows; ``labels`` has one for each row of the data.

    Raises UsageError E685 if their number is another one.
    """
    if data.drawn or len(labels.shape) < 1 or len(labels) != data.total_rows:
        count = len(labels) if labels.ndim else 1
        raise UsageError(
            "E685",
            f"there are {count:,} labels for {data.total_rows:,} samples",
            why="the labels stand in the order of the samples, one for each",
            fix="give one label per sample; with --held, one per sample held apart",
        )
    return labels[list(data.held_rows)]


def _split(runs: Sequence[tuple[Sample, int]], total: int) -> Data:
    """Return ``runs`` with each second one held apart; each has its number of rows."""
    rows: list[int] = []
    first = 0
    for index, (_, count) in enumerate(runs):
        rows += range(first, first + count) if index % 2 else ()
        first += count
    calibration = tuple(sample for sample, _ in runs[::2])
    held = tuple(sample for sample, _ in runs[1::2])
    note = (
        f"calibrated on {_counted(total - len(rows))}, error measured on {_counted(len(rows))} "
        "held apart"
    )
    return Data(calibration, held, note, tuple(rows), total)


def _counted(count: int) -> str:
    """Return ``count`` samples in words."""
    return f"{count:,} sample" + ("s" if count != 1 else "")


def _runs_of(interface: Interface, source: Source) -> list[tuple[Sample, int]]:
    """Return the inputs of each run with the number of its rows, after checking them."""
    samples = [_by_name(interface, sample) for sample in read_samples(source, interface)]
    if not samples:
        raise UsageError(
            "E684",
            "the data hold no sample",
            why="the list or the folder is empty",
            fix="give .npz files with the inputs by name",
        )
    cases = cases_of(interface, samples)
    for case in cases:
        _refuse_nan(interface, case)
    batched = _batch_inputs(interface)
    parts = FEWEST if len(cases) == 1 else 1
    return [part for case in cases for part in _batches(case.values, batched, parts)]


def _by_name(interface: Interface, sample: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return ``sample`` with the float arrays of another width in the type of the input.

    Float data are often kept as float64, which no float32 input takes; a value that float32 rounds
    is as good to calibrate on.
    """
    types = {port.name: port.dtype for port in interface.inputs}
    return {name: _in_type(array, types.get(name)) for name, array in sample.items()}


def _in_type(array: np.ndarray, dtype: ir.DataType | None) -> np.ndarray:
    """Return ``array`` in the float type ``dtype`` if it holds float64, else as it is."""
    if dtype is None or array.dtype != np.float64 or not dtype.is_floating_point():
        return array
    return array.astype(dtype.numpy())


def _refuse_nan(interface: Interface, case: ComparisonInputs) -> None:
    """Raise UsageError E684 if an input of ``case`` holds NaN."""
    for port, value in zip(interface.inputs, case.values, strict=True):
        if not isinstance(value, np.ndarray) or not is_float(value.dtype):
            continue
        count = int(np.isnan(value.astype(np.float32)).sum())
        if count:
            raise UsageError(
                "E684",
                f"the data of input {port.name!r} hold NaN",
                at=f"sample {case.inputs}: {count:,} of {value.size:,} elements",
                why="neither a range nor an error can be measured with NaN",
                fix="leave out the samples with NaN, or replace NaN as the application does",
            )


def _batch_inputs(interface: Interface) -> tuple[bool, ...]:
    """Return which inputs have the open batch dim first; all False if there is no such dim.

    The batch dim is the only open first dim of inputs, if some output has an open first dim, too.
    Exporters often lose the name on the way to the output.
    """
    first = [_first_dim(port) for port in interface.inputs]
    open_outputs = [
        port
        for port in interface.outputs
        if port.shape and isinstance(port.shape[0], ir.SymbolicDim)
    ]
    names = [name for name in first if name is not None]
    if not open_outputs or len(set(names)) != 1:
        return tuple(False for _ in first)
    inside = {
        str(dim.value)
        for port in interface.inputs
        for dim in (port.shape or ())[1:]
        if isinstance(dim, ir.SymbolicDim)
    }
    return tuple(name == names[0] and name not in inside for name in first)


def _first_dim(port: Port) -> str | None:
    """Return the name of the open first dim of ``port``, None if it has none."""
    if port.kind != "tensor" or not port.shape or not isinstance(port.shape[0], ir.SymbolicDim):
        return None
    return port.shape[0].value


def _batches(values: Sample, batched: Sequence[bool], parts: int) -> list[tuple[Sample, int]]:
    """Return ``values`` cut into at least ``parts`` runs of at most ``BATCH`` rows, each with its
    number of rows.
    """
    sizes = {
        len(value)
        for value, cut in zip(values, batched, strict=True)
        if cut and isinstance(value, np.ndarray)
    }
    if len(sizes) != 1:
        return [(values, 1)]
    (count,) = sizes
    step = max(1, min(BATCH, -(-count // parts)))
    return [
        (
            [
                value[start : start + step] if cut and isinstance(value, np.ndarray) else value
                for value, cut in zip(values, batched, strict=True)
            ],
            min(step, count - start),
        )
        for start in range(0, count, step)
    ] or [(values, 0)]
