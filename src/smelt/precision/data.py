"""The inputs on which a model is calibrated, and the held-out inputs on which its error is
measured.

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
from smelt.precision.batches import Batches, Sample
from smelt.precision.data_files import read_samples
from smelt.precision.outputs import has_numbers
from smelt.runtime.inputs import Mode
from smelt.runtime.interface import Interface, interface_of

Source: TypeAlias = "str | Path | np.ndarray | Mapping[str, Any] | Iterable[Any]"
"""A file, a folder, an array for the only input, arrays by input name, or several of these."""

FEWEST = 2
"""The fewest samples that can be split: one to calibrate on, and one held out."""

FEWEST_IN_THREE = 12
"""The fewest samples that are split in three: to calibrate, to choose by, and for the last error.

Of fewer samples, a search chooses by those of the last error."""

DRAWN: tuple[Mode, ...] = ("normal", "wide", "sparse")
"""The distributions of drawn inputs; each is drawn for calibration and again to measure errors."""

SEED_DISTANCE = 1000
"""The difference between the seeds of random held-out inputs and of those for calibration."""


@dataclass(frozen=True)
class Data:
    """Samples for calibration, and held-out samples on which errors are measured.

    ``chosen_on`` are other held-out samples, on which a search measures what it chooses from. It is
    empty if there are few samples; then ``held_out`` serves for both. ``chosen_rows`` and
    ``held_rows`` are the positions of the held-out rows among all ``total_rows`` of the data, by
    which labels are found. They are empty for ``drawn`` data, which are random. ``note`` tells
    users in a sentence where the data are from.
    """

    calibration: tuple[Sample, ...]
    held_out: tuple[Sample, ...]
    note: str
    held_rows: tuple[int, ...] = ()
    total_rows: int = 0
    drawn: bool = False
    chosen_on: tuple[Sample, ...] = ()
    chosen_rows: tuple[int, ...] = ()

    @property
    def selection(self) -> tuple[Sample, ...]:
        """The samples on which a search measures what it chooses from."""
        return self.chosen_on or self.held_out


def calibration_data(
    model: ir.Model,
    source: Source | None,
    held: Source | None = None,
    *,
    dims: Dims | None = None,
    seed: int = 0,
) -> Data:
    """Return the data in ``source`` for ``model``, split in two; ``held`` gives the second part.

    Without ``held``, each second run of ``source`` is held out; of ``FEWEST_IN_THREE`` runs or
    more, a search chooses by half of these. If the first dim of an array is a batch, each row is a
    sample; else the array is one sample. Without ``source``, inputs are drawn at random at the
    sizes ``dims``. Raises UsageError E632 for names, types or shapes that do not fit the model,
    E617 for unreadable files, E684 for NaN or too few samples.
    """
    if source is None:
        return drawn_data(model, dims=dims, seed=seed)
    interface = interface_of(model)
    batches = Batches(model)
    runs = _runs_of(interface, batches, source)
    total = sum(count for _, count in runs)
    if held is not None:
        held_runs = _runs_of(interface, batches, held)
        rows = sum(count for _, count in held_runs)
        note = f"calibrated on {_counted(total)}, error measured on {_counted(rows)} of their own"
        samples = tuple(sample for sample, _ in runs)
        held_out = tuple(sample for sample, _ in held_runs)
        return Data(samples, held_out, note, tuple(range(rows)), rows)
    if len(runs) < FEWEST:
        raise UsageError(
            "E684",
            "the data hold one sample: none is left to measure the error on",
            why="an error measured on the calibration data would look smaller than it is",
            fix="give at least two samples, or a second file with --held FILE; an array is one "
            "sample unless its first dim is a batch",
        )
    return _split(runs, total)


def drawn_data(model: ir.Model, *, dims: Dims | None = None, seed: int = 0) -> Data:
    """Return random inputs for ``model`` at its largest trial sizes, split in two."""
    side = open_side(model, "model")
    calibration, held = (
        tuple(case.values for case in random_cases(side, side, dims, first, DRAWN))
        for first in (seed, seed + SEED_DISTANCE)
    )
    note = (
        "no data were given: errors are measured on random inputs, which may be far from those "
        "that the model will see"
    )
    return Data(calibration, held, note, drawn=True)


def held_labels(data: Data, labels: np.ndarray) -> np.ndarray:
    """Return the labels of the held-out rows; ``labels`` has one for each row of the data.

    Raises UsageError E685 if the number of labels is not that of the rows.
    """
    return _labels_of(data, labels, data.held_rows)


def selection_labels(data: Data, labels: np.ndarray) -> np.ndarray:
    """Return the labels of the rows of ``data.selection``; raises E685 as ``held_labels``."""
    return _labels_of(data, labels, data.chosen_rows or data.held_rows)


def _labels_of(data: Data, labels: np.ndarray, rows: Sequence[int]) -> np.ndarray:
    """Return the labels at ``rows``; raises UsageError E685 unless each row of ``data`` has one."""
    if data.drawn or len(labels.shape) < 1 or len(labels) != data.total_rows:
        count = len(labels) if labels.ndim else 1
        raise UsageError(
            "E685",
            f"there are {count:,} labels for {data.total_rows:,} samples",
            why="labels are in the order of the samples, one for each",
            fix="give one label per sample; with --held, one per sample held out",
        )
    return labels[list(rows)]


def _split(runs: Sequence[tuple[Sample, int]], total: int) -> Data:
    """Return the data of ``runs`` (sample, rows), in which each second run is held out.

    Of at least ``FEWEST_IN_THREE`` runs, half of those that are held out are kept for choices. The
    runs have ``total`` rows.
    """
    in_three = len(runs) >= FEWEST_IN_THREE
    samples: list[list[Sample]] = [[], [], []]
    rows: list[list[int]] = [[], [], []]
    first_row = 0
    for index, (sample, count) in enumerate(runs):
        part = 0 if index % 2 == 0 else 1 if in_three and index % 4 == 1 else 2
        samples[part].append(sample)
        rows[part] += range(first_row, first_row + count)
        first_row += count
    calibration, chosen, held = samples
    by = f"forms chosen on {_counted(len(rows[1]))}, " if in_three else ""
    note = (
        f"calibrated on {_counted(len(rows[0]))}, {by}"
        f"error measured on {_counted(len(rows[2]))} held out"
    )
    return Data(
        tuple(calibration),
        tuple(held),
        note,
        tuple(rows[2]),
        total,
        chosen_on=tuple(chosen),
        chosen_rows=tuple(rows[1]),
    )


def _counted(count: int) -> str:
    """Return the text ``1 sample`` or ``{count} samples``."""
    return f"{count:,} sample" + ("s" if count != 1 else "")


def _runs_of(interface: Interface, batches: Batches, source: Source) -> list[tuple[Sample, int]]:
    """Return the runs in ``source`` as (sample, number of rows), checked against ``interface``.

    A single sample is split into two runs, if it has a batch, so that one can be held out.
    """
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
    parts = FEWEST if len(cases) == 1 else 1
    return [part for case in cases for part in batches.cut(case.values, parts)]


def _by_name(interface: Interface, sample: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return ``sample`` with float64 arrays cast to the float type of their input.

    NumPy stores floats as float64 by default, and a float32 input refuses them. The bits that the
    cast drops hardly change ranges and errors.
    """
    types = {port.name: port.dtype for port in interface.inputs}
    return {name: _in_type(array, types.get(name)) for name, array in sample.items()}


def _in_type(array: np.ndarray, dtype: ir.DataType | None) -> np.ndarray:
    """Return a float64 ``array`` cast to the float type ``dtype``, any other array unchanged."""
    if dtype is None or array.dtype != np.float64 or not dtype.is_floating_point():
        return array
    return array.astype(dtype.numpy())


def refuse_no_numbers(outputs: Sequence[Mapping[str, np.ndarray]]) -> None:
    """Raise UsageError E684 if the outputs of all samples hold no number to measure an error on."""
    if not has_numbers(outputs):
        raise UsageError(
            "E684",
            "the outputs hold no numbers, so no error can be measured",
            why="the samples are empty, or the model computes only NaN, infinities or sequences",
            fix="give samples with at least one row for which an output is finite",
        )


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
