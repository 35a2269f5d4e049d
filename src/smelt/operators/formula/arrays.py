"""Formulas in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from smelt.operators.formula.numeric import Number


class Arrays:
    """The arithmetic of NumPy arrays; see ``Arithmetic``."""

    exp = staticmethod(np.exp)
    log = staticmethod(np.log)
    sqrt = staticmethod(np.sqrt)
    sin = staticmethod(np.sin)
    cos = staticmethod(np.cos)
    floor = staticmethod(np.floor)
    abs = staticmethod(np.abs)
    isnan = staticmethod(np.isnan)
    equal = staticmethod(np.equal)
    where = staticmethod(np.where)
    power = staticmethod(np.power)
    maximum = staticmethod(np.maximum)
    minimum = staticmethod(np.minimum)

    @staticmethod
    def loop(
        go_on: Callable[..., Number],
        step: Callable[..., Sequence[Number]],
        state: Sequence[Number],
    ) -> tuple[Number, ...]:
        """Step while any element wants to."""
        while np.any(go_on(*state)):
            state = step(*state)
        return tuple(state)
