"""Evaluates formulas in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from smelt.operators.elementwise import Row, row_of
from smelt.operators.numeric import Arithmetic, Number


class Arrays(Arithmetic):
    """The arithmetic of NumPy arrays; see ``Arithmetic``."""

    def op(self, op_type: str, *inputs: Number) -> Number:
        """Return the operator's result as an array."""
        row = row_of(op_type)
        assert row is not None
        return self.apply(row, *inputs)

    def apply(self, row: Row, *inputs: Number, **attributes: Any) -> Number:
        """Return an operator's result by its NumPy function, or else by its formula."""
        if row.array is not None:
            return row.array(*inputs)
        assert row.formula is not None
        return row.formula(self, *inputs, **attributes)

    def loop(
        self,
        go_on: Callable[..., Number],
        step: Callable[..., Sequence[Number]],
        state: Sequence[Number],
    ) -> tuple[Number, ...]:
        """Return the state after ``step`` ran while ``go_on`` held for any element."""
        while np.any(go_on(*state)):
            state = step(*state)
        return tuple(state)
