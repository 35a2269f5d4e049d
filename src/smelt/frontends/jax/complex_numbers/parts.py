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
    """``re + i im``; both have one shape and one dtype."""

    re: Array
    im: Array

    def __neg__(self) -> Parts:
        return Parts(-self.re, -self.im)

    def __add__(self, other: Parts) -> Parts:
        return Parts(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Parts) -> Parts:
        return Parts(self.re - other.re, self.im - other.im)

    def __mul__(self, other: Parts) -> Parts:
        return Parts(
            self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re
        )

    def scaled(self, factor: Array) -> Parts:
        """Times a real number."""
        return Parts(self.re * factor, self.im * factor)

    def conjugate(self) -> Parts:
        """The same with the other sign of the imaginary part."""
        return Parts(self.re, -self.im)

    def turned(self) -> Parts:
        """Times i."""
        return Parts(-self.im, self.re)

    def turned_back(self) -> Parts:
        """Times -i."""
        return Parts(self.im, -self.re)


Value: TypeAlias = "Parts | Array"


def is_complex(dtype: object) -> bool:
    """True for the complex element types, False for any other and for None."""
    try:
        return dtype is not None and np.dtype(dtype).kind == "c"  # type: ignore[call-overload]
    except TypeError:
        return False


def real_dtype(dtype: Any) -> np.dtype:
    """The element type of the parts."""
    return np.dtype(np.float64 if np.dtype(dtype).itemsize == 16 else np.float32)


def parts_of(constant: Any) -> Value:
    """A concrete array, split if it is complex."""
    if not is_complex(getattr(constant, "dtype", None)) and not isinstance(constant, complex):
        return constant
    array = np.asarray(constant)
    return Parts(np.array(array.real), np.array(array.imag))


def real(value: Array) -> Parts:
    """A real array as a complex one."""
    return Parts(value, jnp.zeros_like(value))


def flat(values: Any) -> list[Array]:
    """The arrays that ``values`` are made of."""
    result: list[Array] = []
    for value in values:
        result += [value.re, value.im] if isinstance(value, Parts) else [value]
    return result


def grouped(arrays: Any, complex_ones: Any) -> list[Value]:
    """The reverse of ``flat``: two arrays for each True, one for each False."""
    source = iter(arrays)
    return [Parts(next(source), next(source)) if two else next(source) for two in complex_ones]


def primitive(name: str, avals: Callable[..., list[compat.Aval]]) -> compat.Primitive:
    """A primitive on parts, of the types of results that ``avals`` gives."""
    made = compat.Primitive(name)
    made.multiple_results = True
    made.def_abstract_eval(avals)
    return made
