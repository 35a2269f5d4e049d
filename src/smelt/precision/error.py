"""The error of a model's outputs against those of the reference, over all samples at once.

| name | error | unit |
|---|---|---|
| `relative` | norm of the difference over norm of the reference, of the worst output | ratio |
| `cosine` | 1 - cosine of the angle to the reference, mean over rows, of the worst output | ratio |
| `kl` | Kullback-Leibler divergence of the softmax of the last axis, mean over rows | nats |
| `top1` | correct labels lost; without labels, rows whose largest element moved | points of 100 |

For all but `top1`, the error of an output of integers or bools is the part of its elements that
changed.

A Python function ``metric(reference, outputs)`` gets two lists, each with one mapping from output
names to arrays per sample, and returns a number: 0 for equal outputs, larger for worse ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from smelt.errors import SmeltError, UsageError, did_you_mean
from smelt.precision.outputs import Outputs, changed_part, finite_pair, float_names, rows_of

Measure: TypeAlias = Callable[[Outputs, Outputs], float]

LEAST_NORM = 1e-30
"""A squared norm below which an output counts as zero."""


@dataclass(frozen=True)
class Metric:
    """A named error of outputs. ``unit`` is ``ratio``, ``nats``, ``points`` or empty.

    ``needs_all``: the measure must get all samples, because labels or a function refer to each.
    """

    name: str
    measure: Measure
    unit: str = "ratio"
    needs_all: bool = False

    def __call__(self, reference: Outputs, outputs: Outputs) -> float:
        """Return the error; infinite where only one side is NaN. Raises UsageError E686."""
        return self.measure(reference, outputs)

    def text(self, error: float) -> str:
        """Return ``error`` in words: percent for a ratio, else a number with its unit."""
        if self.unit == "ratio":
            return f"{100 * error:.3g} %"
        return f"{error:.3g} {self.unit}".strip()


def find_metric(
    metric: str | Measure | Metric = "relative",
    labels: np.ndarray | None = None,
    output: str | None = None,
) -> Metric:
    """Return the metric of this name, or one that calls the function ``metric``.

    ``labels`` are the classes of the held-out rows, for ``top1`` and for output ``output`` (by
    default the first one of floats). Raises UsageError E686 for an unknown name, E685 for labels
    with another metric.
    """
    if isinstance(metric, Metric):
        return metric
    if labels is not None and metric != "top1":
        raise UsageError(
            "E685",
            f"labels are given for the metric {metric!r}"
            if isinstance(metric, str)
            else "labels are given with a function as metric",
            why="only top1 compares the outputs with labels",
            fix="--metric top1",
        )
    if callable(metric):
        return Metric(
            getattr(metric, "__name__", "metric"), _guarded(metric), unit="", needs_all=True
        )
    if metric == "top1":
        measured = partial(_top1, labels=labels, output=output)
        return Metric("top1", measured, "points", needs_all=labels is not None)
    if metric in MEASURES:
        measure, unit = MEASURES[metric]
        return Metric(metric, measure, unit)
    names = [*MEASURES, "top1"]
    raise UsageError(
        "E686",
        f"there is no metric {metric!r}",
        why=f"metrics are {', '.join(names)}, or a Python function metric(reference, outputs)",
        fix=did_you_mean(metric, names, "--metric relative, or --metric package.module:function"),
    )


def parse_limit(text: str | float, metric: Metric) -> float:
    """Return the largest error that ``text`` allows, such as ``1%`` or ``0.5``.

    Percent of a metric in points are points. Raises UsageError E636 for other text or numbers that
    are not positive.
    """
    words = str(text).strip()
    number = words.removesuffix("%").strip()
    try:
        limit = float(number)
    except ValueError:
        limit = math.nan
    if not limit > 0 or not math.isfinite(limit):
        raise UsageError(
            "E636",
            f"--within {words!r} is no error",
            why="an error is a positive number, with or without a percent sign",
            fix="--within 1%, or --within 0.5 with --metric top1",
        )
    return limit / 100 if words.endswith("%") and metric.unit != "points" else limit


def _worst(
    error_of: Callable[[Outputs, Outputs, str], float], reference: Outputs, outputs: Outputs
) -> float:
    """Return the largest ``error_of`` an output of floats, or changed part of another output."""
    errors = [error_of(reference, outputs, name) for name in float_names(reference)]
    return max([*errors, changed_part(reference, outputs)])


def relative_error(reference: Outputs, outputs: Outputs) -> float:
    """Return the largest relative error of an output: norm of the difference over the norm.

    NaN and infinities must be equal on both sides, else the error is infinite; equal ones are left
    out of both norms. The error of an output of integers or bools is the part that changed.
    """
    return _worst(_relative, reference, outputs)


def _relative(reference: Outputs, outputs: Outputs, name: str) -> float:
    """Return the relative error of the output ``name`` over all samples."""
    difference = norm = 0.0
    for first, second in zip(reference, outputs, strict=True):
        pair = finite_pair(first[name], second[name])
        if pair is None:
            return math.inf
        a, b = pair
        difference += float(np.sum(np.square(a - b)))
        norm += float(np.sum(np.square(a)))
    if not difference:
        return 0.0
    return math.sqrt(difference / norm) if norm > LEAST_NORM else math.inf


def cosine_error(reference: Outputs, outputs: Outputs) -> float:
    """Return 1 - cosine between reference and output, mean over rows, of the worst output.

    A row is an element of the first axis; an output of one dim is one row.
    """
    return _worst(_cosine, reference, outputs)


def _cosine(reference: Outputs, outputs: Outputs, name: str) -> float:
    """Return the mean over rows of ``1 - a . b / (|a| |b|)``, which is 0 for two rows of 0."""
    errors: list[np.ndarray] = []
    for first, second in zip(reference, outputs, strict=True):
        pair = finite_pair(first[name], second[name])
        if pair is None:
            return math.inf
        a, b = (rows_of(part) for part in pair)
        lengths = np.sqrt(np.sum(a * a, axis=1) * np.sum(b * b, axis=1))
        equal = np.all(a == b, axis=1)
        cosine = np.divide(np.sum(a * b, axis=1), lengths, where=lengths > 0, out=lengths * 0)
        errors.append(np.where(equal, 0.0, np.maximum(1 - cosine, 0.0)))
    rows = np.concatenate(errors) if errors else np.zeros(0)
    return float(rows.mean()) if rows.size else 0.0


def divergence(reference: Outputs, outputs: Outputs) -> float:
    """Return the mean Kullback-Leibler divergence of the last axis, of the worst output, in nats.

    Rows that are distributions already are taken as they are; others pass a softmax first.
    """
    return _worst(_divergence, reference, outputs)


def _divergence(reference: Outputs, outputs: Outputs, name: str) -> float:
    """Return the mean over rows of ``sum(p * (log p - log q))``; p are of ``reference``."""
    total, count = 0.0, 0
    for first, second in zip(reference, outputs, strict=True):
        pair = finite_pair(first[name], second[name])
        if pair is None:
            return math.inf
        a, b = (part.reshape(-1, part.shape[-1] if part.ndim else 1) for part in pair)
        if not a.size:
            continue
        are_probabilities = bool(np.all(a >= 0) and np.allclose(a.sum(axis=1), 1, atol=1e-3))
        log_p = _log_probabilities(a, are_probabilities)
        log_q = _log_probabilities(b, are_probabilities)
        total += float(np.sum(np.exp(log_p) * (log_p - log_q)))
        count += len(a)
    return max(total / count, 0.0) if count else 0.0


def _log_probabilities(rows: np.ndarray, are_probabilities: bool) -> np.ndarray:
    """Return the log-softmax of ``rows``, or their logarithms if they ``are_probabilities``."""
    if are_probabilities:
        clipped = np.maximum(rows, 1e-12)
        return np.asarray(np.log(clipped / clipped.sum(axis=1, keepdims=True)))
    shifted = rows - rows.max(axis=1, keepdims=True)  # exp cannot overflow
    return np.asarray(shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True)))


def _top1(
    reference: Outputs, outputs: Outputs, labels: np.ndarray | None, output: str | None
) -> float:
    """Return the lost points of accuracy; without ``labels``, the percent of changed classes."""
    name = output or next(iter(float_names(reference)), "")
    if not reference or name not in reference[0]:
        raise UsageError(
            "E685",
            "top1 needs an output of floats",
            why="the largest element along its last axis is the class",
            fix="choose another metric: --metric relative",
        )
    before, after = (
        np.concatenate([_classes(each[name]) for each in side]) for side in (reference, outputs)
    )
    if labels is None:
        return 100 * float(np.mean(before != after)) if before.size else 0.0
    flat = np.asarray(labels).reshape(-1)
    if flat.size != before.size:
        raise UsageError(
            "E685",
            f"there are {flat.size:,} labels for {before.size:,} rows of output {name!r}",
            why="each row of the held-out samples has one label",
            fix="give one label per sample, in the order of the samples",
        )
    return max(0.0, 100 * float(np.mean(before == flat) - np.mean(after == flat)))


def _classes(array: np.ndarray) -> np.ndarray:
    """Return the index of the largest element of each row; -1 for a row with NaN."""
    rows = array.astype(np.float64).reshape(-1, array.shape[-1] if array.ndim else 1)
    return np.where(np.isnan(rows).any(axis=1), -1, rows.argmax(axis=1))


def _guarded(function: Callable[..., object]) -> Measure:
    """Return ``function`` as a measure, which raises E686 if ``function`` raises or returns no
    number."""
    name = getattr(function, "__name__", function)

    def measure(reference: Outputs, outputs: Outputs) -> float:
        """Return the error that the function measures; infinite for NaN."""
        try:
            result = function(reference, outputs)
        except SmeltError:
            raise
        except Exception as error:
            raise UsageError(
                "E686",
                f"the metric {name!r} raises {type(error).__name__}: {error}",
                why="it gets two lists, each of one dict per sample: output names to arrays",
                fix="correct the function: `reference[0]['NAME']` is an output of the first sample",
            ) from error
        try:
            number = float(result)  # type: ignore[arg-type]
        except Exception as error:
            raise UsageError(
                "E686",
                f"the metric {name!r} returns {result!r:.60}",
                why=f"that is no number: {error}",
                fix="return a number: 0 for equal outputs, larger for worse ones",
            ) from error
        return math.inf if math.isnan(number) else number

    return measure


MEASURES: Mapping[str, tuple[Measure, str]] = {
    "relative": (relative_error, "ratio"),
    "cosine": (cosine_error, "ratio"),
    "kl": (divergence, "nats"),
}
"""Metrics by name, with their units; ``top1`` also takes labels."""
