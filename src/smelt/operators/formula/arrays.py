"""Formulas in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from smelt.operators.elementwise import Row, row_of
from smelt.operators.numeric import Arithmetic, Number


class Arrays(Arithmetic):
    """The arithmetic of NumPy arrays; see ``Arithmetic``."""

    def op(self, op_type: str, *inputs: Number) -> Number:
        row = row_of(op_type)
        assert row is not None
        return self.apply(row, *inputs)

    def apply(self, row: Row, *inputs: Number, **attributes: Any) -> Number:
        """What NumPy has for an operator, or else its formula."""
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
        """Step while any element wants to."""
        while np.any(go_on(*state)):
            state = step(*state)
        return tuple(state)
