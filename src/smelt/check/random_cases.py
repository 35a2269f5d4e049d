"""Random inputs for a comparison, at sizes at which the source runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import onnx_ir as ir

from smelt.check.agreement import Dims, fixed_sizes, trial_sizes
from smelt.check.comparison_inputs import ComparisonInputs
from smelt.check.comparison_side import ComparisonSide
from smelt.errors import UsageError
from smelt.ir.defaults import default_of
from smelt.runtime.fitting_sizes import fitting
from smelt.runtime.inputs import LARGEST, Mode
from smelt.runtime.interface import Interface, Value
from smelt.runtime.named_inputs import Maker

MOST_CHOICES = 2
"""The most inputs that are tried with both values; each doubles the number of runs."""


def random_cases(
    first: ComparisonSide,
    second: ComparisonSide,
    dims: Dims | None,
    seed: int,
    modes: Sequence[Mode],
) -> Iterator[ComparisonInputs]:
    """Yield random inputs at every size in every mode, for the types that one side declares.

    A bool input that chooses the branch of an If is tried with both values, each at sizes at which
    that branch runs. Raises UsageError E634 if neither side is a model.
    """
    sides = sorted((first, second), key=lambda side: side.model is None)
    makers = [side.make_inputs for side in sides if side.make_inputs is not None]
    interfaces = [side.interface for side in (first, second) if side.interface is not None]
    if not makers or not interfaces:
        raise UsageError(
            "E634",
            "random inputs are impossible: neither side is an ONNX model",
            fix="give inputs=[...], one array per input",
            why="functions do not declare the types of their arguments",
        )
    other: Interface | None = interfaces[1] if len(interfaces) > 1 else None
    if any(port.default is not None for port in interfaces[0].inputs):
        modes = (*modes, "moved")
    trials = trial_sizes(interfaces[0], other, dims)
    fixed_names = {*(dims or ()), *(fixed_sizes(interfaces[0], other) if other else ())}
    model = first.model or second.model
    for chosen in _choices(model):
        make = partial(_with_choice, makers[0], chosen)
        attempt = partial(_run_at, first, make)
        fitted = fitting(interfaces[0], trials, fixed_names, attempt, model)
        for index, sizes in enumerate(fitted):
            for mode in modes:
                if mode in LARGEST and index < len(fitted) - 1:
                    continue  # once is enough: large values test elements, not sizes
                yield ComparisonInputs(make(sizes, seed + index, mode), sizes, mode)


def _choices(model: ir.Model | None) -> list[dict[int, bool]]:
    """Return the values of the inputs of ``model`` that choose the branch of an If, by their index.

    One empty choice if there are no such inputs; only the first ``MOST_CHOICES`` inputs count.
    """
    inputs = enumerate(model.graph.inputs) if model is not None else ()
    chosen = [index for index, value in inputs if _chooses_branch(value)][:MOST_CHOICES]
    values = itertools.product((False, True), repeat=len(chosen))
    return [dict(zip(chosen, each, strict=True)) for each in values]


def _chooses_branch(value: ir.Value) -> bool:
    """True if ``value`` is one bool that an If reads as its condition."""
    if value.dtype != ir.DataType.BOOL or value.shape is None or default_of(value) is not None:
        return False
    if any(dim != 1 for dim in value.shape.dims):
        return False
    return any(use.node.op_type == "If" and not use.node.domain for use in value.uses())


def _with_choice(
    make: Maker, chosen: Mapping[int, bool], sizes: Mapping[str, int], seed: int, mode: Mode
) -> list[Value]:
    """Return the inputs that ``make`` returns, with those of ``chosen`` in place of random ones."""
    values = list(make(sizes, seed, mode))
    for index, is_true in chosen.items():
        values[index] = np.full_like(values[index], is_true)
    return values


def _run_at(source: ComparisonSide, make: Maker, sizes: Mapping[str, int]) -> None:
    """Run the source on random inputs at ``sizes``, to see whether it raises."""
    source.run(*make(sizes, 0, "normal"))
