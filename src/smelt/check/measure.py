"""How much a result may move by rounding alone, measured on the source itself.

No fixed tolerance is right: a softmax is good to a few ulp, a deep network to thousands, and a
cancelling difference to nothing. So the source is run again as *twins*, its inputs and weights
each moved by one unit in the last place, up or down at random, and so are the results of steps
that round (``twins.py``). What an output element moves then is what rounding can do to it, and a
compiled model that only rounds differently stays within a small multiple of that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smelt.check.compare import Slack
from smelt.check.subject import Subject
from smelt.check.twins import jitter, shake
from smelt.errors import SmeltError
from smelt.ir.floats import float_info, is_float, spacing
from smelt.runtime.interface import Value
from smelt.runtime.runner import open_runner

TWINS = 3
MARGIN = 16.0
"""Allowed multiple of the largest movement of the twins, which are few."""

FLOOR_ULP = 4.0
"""Allowed for each element whatever the twins say: the last operation rounds, too."""


class Yardstick:
    """Measures what rounding does to the outputs of ``subject``."""

    def __init__(self, subject: Subject, seed: int = 0) -> None:
        self.subject = subject
        self.seed = seed
        self._twins = _open_twins(subject, seed)

    def movement(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> Slack:
        """How far the twins move each element of each output.

        ``outputs`` are those of the subject itself on ``inputs``. For floats: the largest
        movement of the element or the median movement of its output, whichever is more.
        Integers, booleans and strings that change in a twin are infinite: not determined.
        """
        moved: list[list[np.ndarray]] = [[] for _ in outputs]
        for index, twin in enumerate(self._twins):
            rng = np.random.default_rng([self.seed, index, 1])
            try:
                results = twin.run(*[_jittered(value, rng) for value in inputs])
            except SmeltError:
                continue  # a twin may leave the domain of the model; the others still count
            for before, after, seen in zip(outputs, results, moved, strict=True):
                if _shape(before) is not None and _shape(before) == _shape(after):
                    seen.append(np.asarray(after))
        return [_movement(output, seen) for output, seen in zip(outputs, moved, strict=True)]


def allowance(outputs: Sequence[Value], movement: Slack, margin: float = MARGIN) -> Slack:
    """The absolute error that rounding explains: ``margin`` times the movement of each element,
    and never less than ``FLOOR_ULP``; numbers below the normal ones may be flushed to zero."""
    allowed: list[np.ndarray | None] = []
    for output, moved in zip(outputs, movement, strict=True):
        if moved is None or not isinstance(output, np.ndarray) or not is_float(output.dtype):
            allowed.append(moved)
            continue
        with np.errstate(all="ignore"):
            floor = FLOOR_ULP * spacing(output.astype(np.float64), output.dtype)
            allowed.append(np.fmax(margin * moved, floor) + _flushed(output.dtype))
    return allowed


def _flushed(dtype: np.dtype) -> float:
    """The smallest normal number of a type with the exponents of float32 or more: some kernels
    flush what is smaller. In float16 such numbers are too large to ignore."""
    smallest = float(float_info(dtype).smallest_normal)
    return smallest if smallest < 1e-30 else 0.0


def _open_twins(subject: Subject, seed: int) -> list[Subject]:
    """The subject with its weights and rounded steps moved, ``TWINS`` times; itself if no model."""
    if subject.model is None:
        return [subject] * TWINS
    twins = []
    for index in range(TWINS):
        model = subject.model.clone()
        rng = np.random.default_rng([seed, index])
        shake(model, rng)
        opened = open_runner(model, subject.runner)
        twins.append(Subject(f"twin {index}", opened, opened.interface, model))
    return twins


def _shape(value: Value) -> tuple[int, ...] | None:
    return value.shape if isinstance(value, np.ndarray) else None


def _movement(output: Value, seen: list[np.ndarray]) -> np.ndarray | None:
    if not isinstance(output, np.ndarray):
        return None
    if not is_float(output.dtype):
        changed = np.zeros(output.shape, bool)
        for after in seen:
            changed |= np.asarray(output != after)
        return np.where(changed, np.inf, 0.0)
    wide = output.astype(np.float64)
    spread = np.zeros(output.shape)
    with np.errstate(all="ignore"):
        for after in seen:
            moved = np.abs(after.astype(np.float64) - wide)
            spread = np.fmax(spread, np.where(np.isfinite(moved), moved, 0.0))
    typical = np.median(spread[spread > 0]) if (spread > 0).any() else 0.0
    return np.asarray(np.maximum(spread, typical))


def _jittered(value: Value, rng: np.random.Generator) -> Value:
    if isinstance(value, np.ndarray) and is_float(value.dtype):
        return jitter(value, rng)
    if isinstance(value, list):
        return [jitter(item, rng) if is_float(item.dtype) else item for item in value]
    return value
