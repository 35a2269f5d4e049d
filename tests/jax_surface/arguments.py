"""Arguments for a public callable: those of a list of likely ones that JAX itself accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax import lax
from jax_surface.by_path import BY_PATH
from jax_surface.explicit import EXPLICIT
from jax_surface.patience import jax_computes
from jax_surface.surface import Entry


@dataclass(frozen=True)
class Arguments:
    """Positional arguments; arrays are inputs, everything else is fixed in the function."""

    values: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)

    @property
    def arrays(self) -> list[int]:
        return [i for i, value in enumerate(self.values) if isinstance(value, np.ndarray)]

    @property
    def inputs(self) -> list[np.ndarray]:
        """The arrays; complex ones as pairs of real numbers, as an ONNX interface has them."""
        arrays = [self.values[i] for i in self.arrays]
        return [np.stack([a.real, a.imag], -1) if a.dtype.kind == "c" else a for a in arrays]


def floats(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Positive and negative numbers of moderate size."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def unit(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Numbers strictly between 0 and 1."""
    return np.random.default_rng(seed).uniform(0.1, 0.9, shape).astype(dtype)


def ints(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-5, 6, shape).astype(np.int32)


def small(*shape: int, seed: int = 0) -> np.ndarray:
    """Indices and counts."""
    return np.random.default_rng(seed).integers(0, 3, shape).astype(np.int32)


def bools(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, shape).astype(bool)


def candidates(entry: Entry, wide: bool) -> Iterator[Arguments]:
    """What to try, likely ones first."""
    if entry.module == "jax.random":
        yield from _random()
        return
    dtype = np.float64 if wide else np.float32
    x, y, z = (floats(3, 4, dtype=dtype, seed=s) for s in range(3))
    p, q, r = (unit(3, 4, dtype=dtype, seed=s) for s in range(3))
    square = floats(4, 4, dtype=dtype) + 4 * np.eye(4, dtype=dtype)
    symmetric = (square + square.T) / 2
    v, w = floats(5, dtype=dtype), floats(5, dtype=dtype, seed=1)
    i, j = ints(3, 4), ints(3, 4, seed=1)
    n = small(3, 4)
    axis3 = floats(2, 3, 4, dtype=dtype)
    image = floats(1, 6, 6, 2, dtype=dtype)
    groups: list[tuple[Any, ...]] = [
        *((x,), (p,), (square,), (v,), (i,), (n,), (bools(3, 4),), (axis3,), (symmetric,)),
        *((x, y), (p, q), (square, square), (square, v[:4]), (v, w), (i, j), (n, n + 1)),
        *((bools(3, 4), bools(3, 4, seed=1)), (x, n), (n, x), (n + 1, p), (symmetric, square)),
        *((x, y, z), (p, q, r), (bools(3, 4), x, y), (n, p, q), (x, -p, p), (n, n + 3, p)),
        *((p, q, r, p), (n, p, q, r), (p, q, r, p, q)),
        *((x, 1), (x, 0), (v, 1), (v, 2), (x, (4, 3)), (x, (1, 0)), (x, [1, 0]), (x, 0, 1)),
        *((x, "relu"), (x, 2, 1), (v, small(3)), (x, small(3), 0), (x, small(3, 4), 1)),
        *(([x, y],), ((x, y),), ([x, y], 0), (x, (3, 4)), (x, (2, 3, 4)), (x, np.float32)),
        *((3,), (3, 4), ((2, 3),), ((2, 3), 1.5), (0, 5), (0, 5, 2), (np.float32, (2, 3))),
        *((image,), (image, (1, 3, 3, 1)), (image, (1, 12, 12, 2), "linear")),
        *(
            (axis3, axis3),
            (axis3, (2, 0, 1)),
            (x, y.T),
            (v, small(5), 4),
            (small(5), 4),
            (small(5),),
        ),
    ]
    for values in groups:
        yield Arguments(values)


def _random() -> Iterator[Arguments]:
    key = np.asarray(jax.random.key_data(jax.random.key(3)))
    a, b = unit(4) + 1, unit(4, seed=1) + 1
    for rest in (
        *((), ((3, 4),), (a,), (a, b), (3,), ((2, 3), np.float32), ((3,), 0, 10), (0.4,)),
        *((0.3, (3, 4)), (a, (4,)), (a, b, (4,)), (floats(5), (3,)), (floats(5),), (3.0, 0.5)),
        *((-2.0, 2.0, (3, 4)), (floats(3), np.eye(3, dtype=np.float32)), ((3, 3),), (1.5, (4,))),
        *((4, (3,)), (10, unit(3)), (a, 5), (5, a), (unit(4), 3)),
    ):
        yield Arguments((key, *rest))


def accepted(entry: Entry, wide: bool, most: int) -> list[Arguments]:
    """Up to ``most`` arguments that JAX accepts and that give arrays of different structures."""
    explicit = BY_PATH.get(str(entry)) or EXPLICIT.get(str(entry), EXPLICIT.get(entry.name))
    if explicit is not None:
        return [Arguments(*each) for each in explicit(np.float64 if wide else np.float32)][:most]
    found: list[Arguments] = []
    seen: set[Any] = set()
    for arguments in candidates(entry, wide):
        if len(found) == most:
            break
        # Tracing tells most that are refused, and those like others, without computing anything.
        traced = structure(entry, arguments)
        if traced is None or traced in seen:
            continue
        leaves = jax.tree.leaves(call(entry, arguments))
        if any(isinstance(leaf, jax.Array) for leaf in leaves):
            seen.add(traced)
            found.append(arguments)
    return found


NARROW = {
    "f16": {"f": np.float16},
    "i8": {"i": np.int8},
    "u8": {"i": np.uint8},
    "i16": {"i": np.int16},
    "u16": {"i": np.uint16},
    "u32": {"i": np.uint32},
    "bool": {"i": np.bool_},
}
"""Types by name, and what they stand in place of."""


def narrowed(entry: Entry, arguments: Arguments) -> Iterator[tuple[str, Arguments]]:
    """``arguments`` in each narrow type that changes them and that JAX accepts."""
    for name, types in NARROW.items():
        values = [
            value.astype(types.get(value.dtype.kind, value.dtype))
            if isinstance(value, np.ndarray)
            else value
            for value in arguments.values
        ]
        changed = Arguments(tuple(values), arguments.keywords)
        alike = [a.dtype for a in changed.inputs] == [a.dtype for a in arguments.inputs]
        traced = not alike and structure(entry, changed) is not None
        if traced and call(entry, changed) is not None:
            yield name, changed


def call(entry: Entry, arguments: Arguments) -> Any:
    """What JAX gives, None if it refuses."""
    values = [jax.device_put(v) if isinstance(v, np.ndarray) else v for v in arguments.values]
    try:
        with jax_computes():
            return jax.block_until_ready(entry.function(*values, **arguments.keywords))
    except Exception:  # noqa: BLE001 - a callable may refuse arguments in any way it likes
        return None


def structure(entry: Entry, arguments: Arguments) -> Any:
    """How many arguments give which tree of types and ranks; None if JAX itself wants some of the
    arrays as known numbers, or refuses them."""
    arrays = [arguments.values[i] for i in arguments.arrays]
    try:
        result = jax.eval_shape(function_of(entry, arguments), *arrays)
    except Exception:  # noqa: BLE001 - a callable may refuse arguments in any way it likes
        return None
    leaves, tree = jax.tree.flatten(result)
    return tree, tuple((leaf.dtype, leaf.ndim) for leaf in leaves), len(arguments.values)


def function_of(entry: Entry, arguments: Arguments) -> Callable[..., Any]:
    """The callable as a function of its arrays alone."""

    def function(*arrays: Any) -> Any:
        values = list(arguments.values)
        for place, array in zip(arguments.arrays, arrays, strict=True):
            pair = arguments.values[place].dtype.kind == "c"
            values[place] = lax.complex(array[..., 0], array[..., 1]) if pair else array
        return entry.function(*values, **arguments.keywords)

    return function
