"""The inputs on which a conversion to a half type is measured."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.check.agreement import Dims
from smelt.check.comparison_side import open_side
from smelt.check.random_cases import random_cases
from smelt.check.samples import Sample, cases_of
from smelt.precision.ranges import Feed
from smelt.runtime.input_ranges import index_range
from smelt.runtime.interface import Value, interface_of

MOST_RUNS = 4
"""The maximum number of runs on drawn inputs."""


def half_feeds(
    model: ir.Model, samples: Sequence[Sample] | None, dims: Dims | None, seed: int = 0
) -> list[Feed]:
    """Return the inputs of each run: ``samples``, or random inputs at the trial sizes ``dims``.

    Raises UsageError E632 for samples that do not fit.
    """
    if samples is not None:
        return [case.values for case in cases_of(interface_of(model), samples)]
    side = open_side(model, "model")
    drawn: list[Feed] = []
    for first in (seed, seed + 1):
        cases = random_cases(side, side, dims, first, ("normal",))
        drawn += [
            _with_masks(model, case.values) for case in itertools.islice(cases, MOST_RUNS // 2)
        ]
    return drawn


def _with_masks(model: ir.Model, values: Sequence[Value]) -> list[Value]:
    """Return ``values`` with realistic masks: 1, and 0 in the last quarter of the last axis.

    An input is a mask if "mask" is in its name. Models multiply (1 - mask) by a large number, so a
    random mask would give numbers that no application gives, and too large ranges.
    """
    drawn = list(values)
    for index, (value, array) in enumerate(zip(model.graph.inputs, values, strict=True)):
        is_mask = "mask" in (value.name or "").lower() and index_range(value, {}) is None
        if is_mask and isinstance(array, np.ndarray) and array.dtype.kind in "iuf" and array.ndim:
            mask = np.ones_like(array)
            mask[..., max(1, array.shape[-1] * 3 // 4) :] = 0
            drawn[index] = mask
    return drawn
