"""Arguments of callables that take descriptions of what they do as objects of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax
from jax_surface.explicit import Cases

_RAGGED = lax.RaggedDotDimensionNumbers(
    dot_dimension_numbers=(((1,), (1,)), ((), ())),
    lhs_ragged_dimensions=[0],
    rhs_group_dimensions=[0],
)


def _ragged(t: Any) -> Cases:
    drawn = np.random.default_rng(0)
    rows, matrices = drawn.normal(size=(5, 3)).astype(t), drawn.normal(size=(2, 3, 4)).astype(t)
    return [((rows, matrices, np.asarray([2, 3], np.int32), _RAGGED), {})]


def _bits(t: Any) -> Cases:
    key = np.asarray([1, 2, 3, 4], np.uint32)
    return [
        ((key, (3, 4)), {"algorithm": lax.RandomAlgorithm.RNG_THREE_FRY}),
    ]


BY_PATH: dict[str, Callable[[Any], Cases]] = {
    "jax.lax.ragged_dot_general": _ragged,
    "jax.lax.rng_bit_generator": _bits,
}
