"""Turn arrays of the user into the inputs of comparisons.

An array may hold one sample, or several along a leading axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from smelt.check.comparison_inputs import ComparisonInputs
from smelt.errors import UsageError
from smelt.ir.symbolic_dims.dims import size_of
from smelt.runtime.complex_arrays import arrays_as_pairs
from smelt.runtime.interface import Interface, Port
from smelt.runtime.named_inputs import choose_inputs, input_types_text

Sample = Mapping[str, np.ndarray]
"""Arrays by input name."""


def cases_of(
    interface: Interface | None,
    samples: Sequence[Sample],
    fixed: Mapping[str, int] | None = None,
) -> list[ComparisonInputs]:
    """Return the inputs of one comparison for each of ``samples``, or for each part of stacked
    samples.

    Arrays contain several samples in two cases: each array has one dim more than its input; or each
    first dim is the same multiple of the input's first dim. ``fixed`` are sizes of
    symbolic dims that the other side requires. Without an ``interface`` the arrays keep their
    order. Raises UsageError E632 for missing or unknown names, and for arrays that do not fit.
    """
    cases: list[ComparisonInputs] = []
    for number, sample in enumerate(samples, 1):
        name = f"given {number}" if len(samples) > 1 else "given"
        if interface is None:
            cases.append(ComparisonInputs(list(sample.values()), {}, name))
            continue
        full = _with_defaults(interface, arrays_as_pairs(interface, sample))
        for index, arrays in _parts(interface, full, sample.keys(), fixed or {}):
            chosen = choose_inputs(interface, arrays, make=None, sizes=fixed)
            cases.append(ComparisonInputs(chosen.values, chosen.sizes, f"{name}{index}"))
    if not cases:
        raise UsageError(
            "E632",
            "there are no samples to compare on",
            why="the list of samples is empty",
            fix="give at least one dict of arrays by name",
        )
    return cases


def _parts(
    interface: Interface, sample: Sample, user_names: Iterable[str], fixed: Mapping[str, int]
) -> Iterator[tuple[str, Sample]]:
    """Yield each sample that the arrays of ``sample`` hold, with its index as text, ``[0]``.

    If they hold one sample, the index is empty. Arrays that the user did not name, the defaults of
    inputs, are in each sample.
    """
    ports = {port.name: port for port in interface.inputs}
    steps = {name: _step(ports[name], sample[name], fixed) for name in user_names if name in ports}
    counts = {len(sample[name]) // (step or 1) for name, step in steps.items() if step is not None}
    count = counts.pop() if len(counts) == 1 and None not in steps.values() else 0
    if not count:
        yield "", sample
        return
    for index in range(count):
        parts = {
            name: sample[name][index * step : (index + 1) * step] if step else sample[name][index]
            for name, step in steps.items()
        }
        yield f"[{index}]", {**sample, **parts}


def _step(port: Port, array: np.ndarray, fixed: Mapping[str, int]) -> int | None:
    """Return the number of rows of ``array`` per sample.

    Return 0 if ``array`` has one more axis than the input: its first axis is then the index of the
    sample. Return None if ``array`` is a single sample.
    """
    if port.shape is None:
        return None
    if array.ndim == len(port.shape) + 1:
        return 0
    if array.ndim != len(port.shape) or not array.ndim:
        return None
    first = size_of(port.shape[0], fixed)
    if isinstance(first, int) and first and len(array) > first and len(array) % first == 0:
        return first
    return None


def _with_defaults(interface: Interface, arrays: Sample) -> Sample:
    """Return ``arrays`` and the inputs' defaults; raises E632 if any other input is missing."""
    defaults = {p.name: p.default.numpy() for p in interface.inputs if p.default is not None}
    missing = [
        port.name
        for port in interface.inputs
        if port.name not in arrays and port.name not in defaults
    ]
    if missing:
        raise UsageError(
            "E632",
            f"there are no arrays for {', '.join(map(repr, missing))}",
            at=[f"there is {name!r}" for name in arrays][:8],
            why=f"the inputs of the model are {input_types_text(interface)}",
            fix="add the missing arrays by name",
        )
    return {**defaults, **arrays}
