"""PRNG keys: their dtypes, their integers, and JAX's functions on those integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax._src import core
from jax._src.random import core as random
from jax._src.random import prng

from smelt.frontends.jax.compat import Aval, is_extended, struct_of


def key_dtype() -> Any:
    """Return the dtype of keys that ``jax.random.key`` makes with the current implementation."""
    return jax.eval_shape(lambda: jax.random.key(0)).dtype


def physical_struct(aval: Aval) -> Any:
    """Return the ``ShapeDtypeStruct`` that represents ``aval``: for PRNG keys, an integer array."""
    return struct_of(core.physical_aval(aval))


def plain_array(constant: Any) -> Any:
    """Return the integers of an array of PRNG keys; other constants unchanged."""
    if not isinstance(constant, jax.Array) or not is_extended(constant.dtype):
        return constant
    with jax.ensure_compile_time_eval():  # Inside of a trace, the result would be a tracer.
        return prng.random_unwrap(constant)


def to_integers(array: Any) -> Any:
    """Return the integers of PRNG keys, also of traced ones; other arrays unchanged."""
    is_typed = hasattr(array, "dtype") and is_extended(array.dtype)
    return prng.random_unwrap(array) if is_typed else array


def to_keys(array: Any, dtype: Any) -> Any:
    """Return integers as PRNG keys of ``dtype``; if ``dtype`` is a number type, convert to it."""
    if is_extended(dtype):
        return prng.random_wrap(array, impl=dtype._impl)
    return jax.lax.convert_element_type(array, dtype)


def without_keys(tree: Any) -> Any:
    """Return ``tree`` with integer arrays in place of arrays of PRNG keys."""
    return jax.tree.map(plain_array, tree)


def _gamma(avals: tuple[Aval, ...], params: dict[str, Any], *operands: Any) -> Any:
    """Return gamma samples; operands are the integers of keys and ``alpha``."""
    key, alpha = operands
    typed = prng.random_wrap(key, impl=avals[0].dtype._impl)
    return random._gamma_impl(typed, alpha, use_vmap=True, **params)


ON_KEYS: dict[str, Callable[..., Any]] = {
    "random_wrap": lambda avals, params, array: array,
    "random_unwrap": lambda avals, params, key: key,
    "random_clone": lambda avals, params, key: key,
    "random_seed": lambda avals, params, seeds: prng.random_seed_impl_base(seeds, **params),
    "random_split": lambda avals, params, key: prng.random_split_impl_base(
        avals[0].dtype._impl, key, len(avals[0].shape), **params
    ),
    "random_fold_in": lambda avals, params, key, data: prng.random_fold_in_impl_base(
        avals[0].dtype._impl, key, data, avals[0].shape
    ),
    "random_bits": lambda avals, params, key: prng.random_bits_impl_base(
        avals[0].dtype._impl, key, len(avals[0].shape), **params
    ),
    "random_gamma": _gamma,
}
"""JAX's function for each primitive on keys; it computes on the integers of the keys."""
