"""Python code that compares symbolic sizes by ``==`` and ``!=``, hashes them, or uses them as bool.

JAX answers that two sizes differ if it cannot compare them, and that no size is zero. Its own code
relies on that where it broadcasts and hashes sizes. But user code such as
``if x.shape[0] % 2 == 0`` would silently take one branch for all sizes. So smelt answers only if
the answer is the same for every size, and else raises InconclusiveDim, as JAX does for ``<``.
``size_cases.py`` then traces each answer.

Code of installed libraries gets JAX's answers for whole sizes. If it compares with a number above
1, smelt warns, because the library has a special case for that size. Comparisons of remainders
and quotients raise there, too.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import FrameType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from smelt.frontends.jax import compat
from smelt.frontends.jax.compat import InconclusiveDim, SymbolicDim, is_symbolic
from smelt.frontends.jax.open_sizes.callers import Caller, caller_of, calling_frame
from smelt.frontends.jax.open_sizes.least_sizes import least_size
from smelt.frontends.jax.open_sizes.min_max_equality import equal_by_min_max
from smelt.frontends.jax.open_sizes.residues import is_zero, known_remainders
from smelt.frontends.jax.open_sizes.symbols import parse
from smelt.frontends.jax.open_sizes.table_lookups import integer_keys
from smelt.frontends.jax.patching.replacement import Function, Replacement

_ASSUMED: ContextVar[frozenset[str]] = ContextVar("assumed", default=frozenset())
"""Equalities that the current size case assumes to be false."""


@contextmanager
def assuming_false(equality: str) -> Iterator[None]:
    """Treat ``equality``, such as ``N == 4``, as false within the ``with`` block."""
    token = _ASSUMED.set(_ASSUMED.get() | {equality})
    try:
        yield
    finally:
        _ASSUMED.reset(token)


def _replace_eq(original: Function) -> Function:
    """Return a replacement of ``==`` for symbolic sizes.

    It returns the answer if it is the same for every size, and else raises InconclusiveDim.
    Compared with an array it returns an array, which the model computes.
    """

    def equal(self: Any, other: Any) -> Any:
        """Compare for equality; if the answer depends on the size, JAX's own code gets False."""
        if original(self, other):
            return True
        if equal_by_min_max(self, other):
            return True
        frame = calling_frame()
        if caller_of(frame) is Caller.JAX:
            return False
        return jnp.equal(self, other) if _is_array(other) else _are_equal(self, other, "==", frame)

    return equal


def _replace_ne(original: Function) -> Function:
    """Return a replacement of ``!=`` for symbolic sizes.

    It returns the answer if it is the same for every size, and else raises InconclusiveDim.
    Compared with an array it returns an array, which the model computes.
    """

    def not_equal(self: Any, other: Any) -> Any:
        """Compare for inequality; if the answer depends on the size, JAX's own code gets True."""
        if not original(self, other) or equal_by_min_max(self, other):
            return False
        frame = calling_frame()
        if caller_of(frame) is Caller.JAX:
            return True
        if _is_array(other):
            return jnp.not_equal(self, other)
        return not _are_equal(self, other, "!=", frame)

    return not_equal


def _replace_bool(original: Function) -> Function:
    """Return a replacement of ``bool`` for symbolic sizes: whether a size differs from 0."""

    def truth(self: Any) -> bool:
        """Return True to JAX's code; to other code, whether the size differs from 0."""
        frame = calling_frame()
        return caller_of(frame) is Caller.JAX or not _are_equal(self, 0, "!=", frame)

    return truth


def _replace_hash(original: Function) -> Function:
    """Return a replacement of ``hash`` for symbolic sizes.

    A dict of numbers finds a size only if their hashes agree. So, for user code, a size that equals
    a key of the indexed table gets the hash of that key.
    """

    def hashed(self: Any) -> int:
        """Return the hash of the integer key that the size equals, else JAX's hash."""
        frame = calling_frame()
        if caller_of(frame) is Caller.USER:
            for number in integer_keys(frame):
                if _are_equal(self, number, "==", frame):
                    return hash(number)
        return int(original(self))

    return hashed


def _always_true(_: Any) -> bool:
    """Return True: the truth of an object without ``__bool__`` in Python."""
    return True


def _are_equal(size: Any, other: Any, comparison: str, frame: FrameType) -> bool:
    """Return whether ``size`` equals ``other``, for the code that ``frame`` runs.

    If the answer depends on the symbols, user code gets InconclusiveDim and libraries get False.
    ``comparison`` is the operator in the error's text.
    """
    if isinstance(other, float) and other.is_integer():
        other = int(other)
    if not is_symbolic(other):
        try:
            other = operator.index(other)
        except TypeError:
            return False
    answer = _is_same(size, other)
    if answer is not None:
        return answer
    if f"{size} == {other}" in _ASSUMED.get():
        return False
    if caller_of(frame) is Caller.USER or _is_divided(size) or _is_divided(other):
        compared = f"'{size}' {comparison} '{other}'"
        raise InconclusiveDim(f"Symbolic dimension comparison {compared} is inconclusive.")
    if not is_symbolic(other) and other > 1:
        warnings.warn(
            f"the model is wrong where {size} is {other}, because"
            f" {frame.f_code.co_filename}:{frame.f_lineno} has a special case for that size",
            stacklevel=5,
        )
    return False


def _is_same(size: Any, other: Any) -> bool | None:
    """Return whether two sizes are equal, None if that depends on the symbols."""
    if is_symbolic(other) and compat.scope_of(other) is not compat.scope_of(size):
        return False
    difference = size - other
    with suppress(InconclusiveDim):
        if difference > 0:
            return False
    with suppress(InconclusiveDim):
        if difference < 0:
            return False
    with suppress(InconclusiveDim):
        if difference >= 0 and difference <= 0:
            return True
    return is_zero(parse(difference), known_remainders(compat.constraints_of(size)))


def _is_divided(size: Any) -> bool:
    """True if ``size`` contains a remainder or a quotient."""
    return any(name in str(size) for name in ("mod(", "floordiv("))


def _is_array(other: Any) -> bool:
    """True for an array of JAX or NumPy."""
    return isinstance(other, jax.Array | np.ndarray)


_INTEGER_FOR: dict[str, Callable[[float], int]] = {
    "__lt__": math.ceil,
    "__ge__": math.ceil,
    "__le__": math.floor,
    "__gt__": math.floor,
}
"""How each comparison rounds a float to an integer without changing the answer.

``n < 2.5`` is ``n < 3``, and ``n <= 2.5`` is ``n <= 2``.
"""

_JNP_COMPARISONS: dict[str, Function] = {
    "__lt__": jnp.less,
    "__le__": jnp.less_equal,
    "__gt__": jnp.greater,
    "__ge__": jnp.greater_equal,
}


def _replace_ordered(name: str) -> Callable[[Function], Function]:
    """Return a function from JAX's comparison ``name``, such as ``__lt__``, to its replacement.

    The replacement compares a symbolic size with an array as an array, which the model computes.
    """

    def replacement(original: Function) -> Function:
        """Return the replacement of the comparison ``original``."""

        def compare(self: Any, other: Any) -> Any:
            """Compare the size with ``other``: an array, a float, an integer or a size.

            If JAX's comparison is inconclusive, try bounds of products of sizes.
            """
            if _is_array(other):
                return _JNP_COMPARISONS[name](self, other)
            if isinstance(other, float):
                if not math.isfinite(other):
                    return getattr(0.0, name)(other)
                other = _INTEGER_FOR[name](other)
            try:
                return original(self, other)
            except InconclusiveDim:
                answer = _by_products(self, other, name)
                if answer is None:
                    raise
                return answer

        return compare

    return replacement


def _by_products(size: Any, other: Any, name: str) -> bool | None:
    """Return the answer of the comparison ``name`` by lower bounds of both differences.

    None if the bounds do not decide. ``least_size`` finds more bounds than JAX does.
    """
    if is_symbolic(other) and compat.scope_of(other) is not compat.scope_of(size):
        return None
    constraints = compat.constraints_of(size)
    least_excess = least_size(size - other, constraints)
    least_deficit = least_size(other - size, constraints)
    # size >= other decides >= and <; size > other is needed to decide > and <=.
    needed_excess = 1 if name in ("__gt__", "__le__") else 0
    if least_excess is not None and least_excess >= needed_excess:
        return name in ("__gt__", "__ge__")
    needed_deficit = 1 if name in ("__lt__", "__ge__") else 0
    if least_deficit is not None and least_deficit >= needed_deficit:
        return name in ("__lt__", "__le__")
    return None


ORDERED = tuple(Replacement(SymbolicDim, name, _replace_ordered(name)) for name in _JNP_COMPARISONS)
"""Replacements that JAX needs wherever the sizes of an array are symbolic."""

REPLACEMENTS = (
    Replacement(SymbolicDim, "__eq__", _replace_eq),
    Replacement(SymbolicDim, "__ne__", _replace_ne),
    Replacement(SymbolicDim, "__hash__", _replace_hash),
    Replacement(SymbolicDim, "__bool__", _replace_bool, absent=_always_true),
    *ORDERED,
)
"""Unlike patches, these are not optional: without them, results may be wrong."""
