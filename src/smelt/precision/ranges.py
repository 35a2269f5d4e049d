"""Measure the range of every float value of a model over given inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from smelt.frontends.onnx.inline import inline_functions
from smelt.precision.extremes import instrument
from smelt.runtime.interface import Interface, Value
from smelt.runtime.onnxruntime import OnnxRuntime
from smelt.spans import span

Feed = Mapping[str, Value] | Sequence[Value]
"""The inputs of one run, by name or in order."""

TIME_LIMIT = 1800.0
"""Seconds after which one run is stopped."""


@dataclass(frozen=True, slots=True)
class Range:
    """The smallest and the largest finite number of a value; ``smallest > largest`` without any.

    ``infinite`` and ``nan`` say whether it also holds infinities and NaN.
    """

    smallest: float = np.inf
    largest: float = -np.inf
    infinite: bool = False
    nan: bool = False

    @property
    def magnitude(self) -> float:
        """The largest finite magnitude, 0 without finite numbers."""
        return max(-self.smallest, self.largest, 0.0)

    @property
    def is_finite(self) -> bool:
        """True if the value holds neither infinities nor NaN."""
        return not (self.infinite or self.nan)

    def __or__(self, other: Range) -> Range:
        """Return the range of both values together."""
        return Range(
            min(self.smallest, other.smallest),
            max(self.largest, other.largest),
            self.infinite or other.infinite,
            self.nan or other.nan,
        )


@dataclass
class Ranges:
    """Ranges of float values over ``samples`` runs; ``unmeasured`` maps other values to the reason.

    Keys are graph inputs and results of nodes, also inside If, Loop and Scan.
    """

    by_value: dict[ir.Value, Range] = field(default_factory=dict)
    unmeasured: dict[ir.Value, str] = field(default_factory=dict)
    samples: int = 0

    def of(self, value: ir.Value) -> Range | None:
        """Return the range of ``value``, None if it was not measured."""
        return self.by_value.get(value)


def range_of(array: np.ndarray) -> Range:
    """Return the range of the numbers of ``array``, such as a weight."""
    numbers = array.astype(np.float32) if array.dtype.itemsize < 4 else array
    finite = np.isfinite(numbers)
    nan = bool(np.isnan(numbers).any())
    return Range(
        float(np.min(numbers, initial=np.inf, where=finite)),
        float(np.max(numbers, initial=-np.inf, where=finite)),
        bool(np.isinf(numbers).any()),
        nan,
    )


def measure_ranges(model: ir.Model, feeds: Iterable[Feed], *, threads: int = 0) -> Ranges:
    """Return the range of each float value of ``model`` over ``feeds``, one run for each.

    If values of a run are not all finite, it is repeated to measure the finite numbers alone.
    Weights are shared with the runtime, so a model may exceed 2 GB. ``threads`` is the number of
    threads of ONNX Runtime, 0 for one per core. The opset must be at least 9; functions are inlined
    in ``model``. Raises the errors of ``OnnxRuntime``, and UsageError E632 for inputs that do not
    fit.
    """
    if model.functions:
        inline_functions(model)
    plain = _Meter(model, threads, finite=False)
    careful: _Meter | None = None
    ranges = Ranges(dict.fromkeys(plain.values, Range()), plain.unmeasured)
    for feed in feeds:
        with span("measure ranges", sample=ranges.samples):
            smallest, largest, sums = plain(feed)
            infinite = np.isneginf(smallest) | np.isposinf(largest)
            has_nan = np.isnan(smallest) | np.isnan(largest) | np.isnan(sums)
            if (infinite | has_nan).any():
                careful = careful or _Meter(model, threads, finite=True)
                smallest, largest, nans = careful(feed)
            else:
                nans = np.zeros_like(sums)
        ranges.samples += 1
        rows = zip(plain.values, smallest, largest, infinite, nans, strict=True)
        for value, low, high, is_infinite, nan_count in rows:
            measured = Range(float(low), float(high), bool(is_infinite), bool(nan_count))
            ranges.by_value[value] |= measured
    return ranges


class _Meter:
    """An open session that returns the extremes of the values of a model, see ``extremes.py``."""

    def __init__(self, model: ir.Model, threads: int, *, finite: bool) -> None:
        """Open a session of an instrumented copy of ``model``; ``finite`` ignores NaN and inf."""
        instrumented = instrument(model, finite=finite)
        self.values, self.unmeasured = instrumented.values, instrumented.unmeasured
        self.run = OnnxRuntime(
            instrumented.model,
            consume=True,
            threads=threads,
            time_limit=TIME_LIMIT,
            in_file_order=True,
        )

    def __call__(self, feed: Feed) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Run on ``feed``; return minima, maxima and third numbers, one for each of ``values``."""
        results = self.run(*in_order(self.run.interface, feed))
        smallest, largest, third = (np.asarray(result) for result in results)
        return smallest, largest, third


def in_order(interface: Interface, feed: Feed) -> Sequence[Value]:
    """Return the values of ``feed`` in the order of the inputs, None for those left out."""
    if not isinstance(feed, Mapping):
        return feed
    return [feed.get(port.name) for port in interface.inputs]
