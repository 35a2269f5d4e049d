"""A complex array as its real and its imaginary part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np

from smelt.frontends.jax import compat

Array: TypeAlias = Any
"""A real array, or a tracer of one."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The complex array ``re + i im``; both parts have the same shape and dtype."""

    re: Array
    im: Array

    def __neg__(self) -> Parts:
        return Parts(-self.re, -self.im)

    def __add__(self, other: Parts) -> Parts:
        return Parts(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Parts) -> Parts:
        return Parts(self.re - other.re, self.im - other.im)

    def __mul__(self, other: Parts) -> Parts:
        """Return ``(a + ib) (c + id) = (ac - bd) + i (ad + bc)``."""
        return Parts(
            self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re
        )

    def scaled(self, factor: Array) -> Parts:
        """Return the product with a real number."""
        return Parts(self.re * factor, self.im * factor)

    def conjugate(self) -> Parts:
        """Return the complex conjugate."""
        return Parts(self.re, -self.im)

    def times_i(self) -> Parts:
        """Return the product with i."""
        return Parts(-self.im, self.re)

    def times_minus_i(self) -> Parts:
        """Return the product with -i."""
        return Parts(self.im, -self.re)


Value: TypeAlias = "Parts | Array"


def is_complex(dtype: object) -> bool:
    """True for complex element types; False for any other and for None."""
    try:
        return dtype is not None and np.dtype(dtype).kind == "c"  # type: ignore[call-overload]
    except TypeError:
        return False


def real_dtype(dtype: Any) -> np.dtype:
    """Return the element type of the real and imaginary parts of ``dtype``."""
    return np.dtype(np.float64 if np.dtype(dtype).itemsize == 16 else np.float32)


def parts_of(constant: Any) -> Value:
    """Return a concrete array, split into ``Parts`` if it is complex."""
    if not is_complex(getattr(constant, "dtype", None)) and not isinstance(constant, complex):
        return constant
    array = np.asarray(constant)
    return Parts(np.array(array.real), np.array(array.imag))


def real(value: Array) -> Parts:
    """Return a real array as ``Parts`` with imaginary part 0."""
    return Parts(value, jnp.zeros_like(value))


def real_arrays(values: Any) -> list[Array]:
    """Return the real arrays of ``values``: two for each ``Parts``, one for each real array."""
    result: list[Array] = []
    for value in values:
        result += [value.re, value.im] if isinstance(value, Parts) else [value]
    return result


def grouped(arrays: Any, is_pair: Any) -> list[Value]:
    """Undo ``real_arrays``: two arrays make one ``Parts`` for each True in ``is_pair``."""
    source = iter(arrays)
    return [Parts(next(source), next(source)) if pair else next(source) for pair in is_pair]


def primitive(name: str, avals: Callable[..., list[compat.Aval]]) -> compat.Primitive:
    """Return a primitive with several results, whose types ``avals`` returns."""
    result = compat.Primitive(name)
    result.multiple_results = True
    result.def_abstract_eval(avals)
    return result
