"""Rows of tests of the Core ML reader: an operator, its inputs, and what NumPy computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from frontends.coreml.mil import run_one, type_of

F, I = np.float32, np.int32  # noqa: E741 - the element types of MIL
rng = np.random.default_rng(7)


def f(*shape: int, low: float = -2, high: float = 2) -> np.ndarray:
    """Random float32 numbers."""
    return rng.uniform(low, high, shape).astype(F)


def i(*shape: int, low: int = -9, high: int = 9) -> np.ndarray:
    """Random int32 numbers."""
    return rng.integers(low, high, shape).astype(I)


@dataclass
class Row:
    """One use of an operator; inputs whose names ``constants`` mentions are not passed by name."""

    kind: str
    feeds: Mapping[str, np.ndarray]
    wanted: Sequence[np.ndarray]
    constants: Mapping[str, Any] = field(default_factory=dict)
    ios: int = 17

    def check(self) -> None:
        """Read and run the operator; compare its results with the references."""
        feeds = {name: np.asarray(array) for name, array in self.feeds.items()}
        mentioned = [a for v in self.constants.values() if isinstance(v, list) for a in v]
        inputs = {name: f"%{name}" for name in feeds if f"%{name}" not in mentioned}
        kinds = [type_of(wanted) for wanted in self.wanted]
        results = run_one(self.kind, feeds, kinds, self.ios, **inputs, **self.constants)
        for result, wanted in zip(results, self.wanted, strict=True):
            np.testing.assert_allclose(result, wanted, 1e-5, 1e-6)


class Rows(list[Row]):
    """A table of rows."""

    def add(
        self, kind: str, feeds: Mapping[str, np.ndarray], *wanted: Any, ios: int = 17, **others: Any
    ) -> None:
        """Add a row; a reference may be a function of the feeds in order."""
        results = []
        for each in wanted:
            array = each(*feeds.values()) if isinstance(each, Callable) else np.asarray(each)
            results.append(array.astype(F) if array.dtype == np.float64 else array)
        self.append(Row(kind, feeds, results, others, ios))

    def ids(self) -> list[str]:
        """Return a name for each row."""
        return [f"{each.kind}-{index}" for index, each in enumerate(self)]
