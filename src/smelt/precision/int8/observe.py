"""Read the values inside a model while it runs: their histograms, and how many numbers
are clipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.cloning import clone_model
from smelt.precision.batches import Sample
from smelt.precision.int8.linear import Parameters
from smelt.runtime.interface import interface_of
from smelt.runtime.onnxruntime import OnnxRuntime

BINS = 2048
"""The number of bins of a histogram."""

GROUP = 48
"""The most values that one run returns, so that memory stays small."""


@dataclass(frozen=True)
class Histogram:
    """The ``counts`` of the numbers in equal bins from ``smallest`` to ``largest``."""

    counts: np.ndarray
    smallest: float
    largest: float

    @property
    def edges(self) -> np.ndarray:
        """The borders of the bins."""
        return np.linspace(self.smallest, self.largest, len(self.counts) + 1)


def observe(
    model: ir.Model, names: Sequence[str], samples: Sequence[Sample]
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (name, array) for each of the values ``names`` of the main graph and each sample."""
    inputs = [port.name for port in interface_of(model).inputs]
    computed = [name for name in names if name not in inputs]
    for sample in samples:
        for name, value in zip(inputs, sample, strict=True):
            if name in names and isinstance(value, np.ndarray):
                yield name, value
    for start in range(0, len(computed), GROUP):
        group = computed[start : start + GROUP]
        work = clone_model(model)
        values = {str(value.name): value for node in work.graph for value in node.outputs}
        work.graph.outputs[:] = [values[name] for name in group]
        run = OnnxRuntime(work, consume=True, optimized=True, threads=0)
        for sample in samples:
            for name, value in zip(group, run(*sample), strict=True):
                yield name, np.asarray(value)


def histograms(
    model: ir.Model, ranges: Mapping[str, tuple[float, float]], samples: Sequence[Sample]
) -> dict[str, Histogram]:
    """Return the histogram over all samples of each value in ``ranges``, which gives its ends."""
    counts = {name: np.zeros(BINS, np.int64) for name in ranges}
    for name, value in observe(model, list(ranges), samples):
        low, high = ranges[name]
        if low < high:
            counts[name] += np.histogram(value, BINS, (low, high))[0]
    return {name: Histogram(counts[name], *ranges[name]) for name in ranges}


@dataclass(frozen=True)
class CodedRange:
    """The range that a value's codes cover, and the fraction of its numbers that are clipped."""

    low: float
    high: float
    saturated: float


def saturation(
    model: ir.Model, parameters: Mapping[str, Parameters], samples: Sequence[Sample]
) -> dict[str, CodedRange]:
    """Return, for each value, the range of its codes and the fraction of numbers that are clipped.

    A number within half a step of the range rounds to its end, and does not count as clipped.
    """
    beyond, total = dict.fromkeys(parameters, 0), dict.fromkeys(parameters, 0)
    for name, value in observe(model, list(parameters), samples):
        low, high = parameters[name].limits
        half = float(parameters[name].scale) / 2
        beyond[name] += int(np.count_nonzero((value < low - half) | (value > high + half)))
        total[name] += value.size
    return {
        name: CodedRange(*each.limits, beyond[name] / max(total[name], 1))
        for name, each in parameters.items()
    }
