"""Represent PRNG keys by the integers that they hold.

ONNX has no type for JAX's keys. A key array becomes a uint32 array with one dim more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from smelt.errors import Unsupported
from smelt.frontends.jax import compat, prng
from smelt.frontends.jax.representation import Representation, Run, convert
from smelt.frontends.jax.source_lines import place

COMPARED: dict[str, Callable[..., Any]] = {"eq": jnp.all, "ne": jnp.any}
"""Comparisons of keys, and the reduction over the comparisons of their integers."""


def without_keys(closed: compat.ClosedJaxpr) -> compat.ClosedJaxpr:
    """Return ``closed`` with an integer array for each key array, inside and as input or output.

    Raises an ErrorList of Unsupported E102 for primitives that neither move nor compare keys,
    except those of ``prng.ON_KEYS``.
    """
    return convert(closed, _KEYS)


def _is_key(aval: compat.Aval) -> bool:
    """True for an array of PRNG keys, whose dtype JAX calls extended."""
    dtype = getattr(aval, "dtype", None)
    return dtype is not None and compat.is_extended(dtype)


def _apply(equation: compat.Equation, values: list[Any], run: Run) -> list[Any]:
    """Return the results of a primitive on keys, computed on the integers of the keys."""
    name = equation.primitive.name
    if name in prng.ON_KEYS:
        avals = tuple(atom.aval for atom in equation.invars)
        traced, _ = compat.make_jaxpr(
            lambda *raw: prng.ON_KEYS[name](avals, equation.params, *raw),
            tuple(prng.physical_struct(aval) for aval in avals),
        )
        # The implementation of a primitive may use typed keys itself.
        return run(traced, values)

    # A primitive that moves keys moves all integers of a key alike, so vmap it over these.
    def moved(*operands: Any) -> list[Any]:
        """Return the results of the primitive for one integer of each key."""
        return compat.rebind(equation, operands, equation.params)

    axes = tuple(-1 if _is_key(atom.aval) else None for atom in equation.invars)
    results: list[Any] = jax.vmap(moved, in_axes=axes, out_axes=-1)(*values)
    compare = COMPARED.get(name)
    return results if compare is None else [compare(result, axis=-1) for result in results]


def _refusal(equation: compat.Equation) -> Unsupported | None:
    """Return E102 for a primitive that computes with keys in an unknown way, else None."""
    name = equation.primitive.name
    if name in prng.ON_KEYS or name in COMPARED:
        return None
    if all(_is_key(variable.aval) for variable in equation.outvars):
        return None
    return Unsupported(
        "E102",
        f"primitive {name!r} is not supported on PRNG keys",
        at=place(equation),
        why="smelt can move and compare keys, and has no rule for other primitives on them",
        fix="use jax.random.key_data, and compute with its integers",
    )


_KEYS = Representation(
    concerns=_is_key,
    structs=lambda aval: [prng.physical_struct(aval)],
    parts=lambda integers: [integers],
    whole=lambda parts: parts[0],
    split=prng.plain_array,
    apply=_apply,
    refusal=_refusal,
)
