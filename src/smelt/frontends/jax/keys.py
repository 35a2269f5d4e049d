"""Keys of random numbers as the integers that they are.

ONNX has no type for JAX's keys, which are arrays of uint32 with a dim more. ``without_keys`` traces
a jaxpr once more with those arrays in their place; jaxprs without keys are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from smelt.errors import Unsupported
from smelt.frontends.jax import compat
from smelt.frontends.jax.places import place

INLINED = ("checkpoint", "remat2")
"""Calls by a jaxpr that is not closed; others are found by the name of their parameter."""

COMPARED: dict[str, Callable[..., Any]] = {"eq": jnp.all, "ne": jnp.any}
"""Comparisons of keys, and how those of their integers make one."""


def without_keys(closed: compat.ClosedJaxpr) -> compat.ClosedJaxpr:
    """``closed`` with an array of integers for each array of keys, inside and at its interface.

    Raises Unsupported E102 for a primitive that does more with keys than moving them.
    """
    return _Conversion().closed(closed)


def _is_key(atom: compat.Atom) -> bool:
    dtype = getattr(atom.aval, "dtype", None)
    return dtype is not None and compat.is_extended(dtype)


class _Conversion:
    """One use of ``without_keys``: each jaxpr is converted once, however often it is called."""

    def __init__(self) -> None:
        self._keyed: dict[int, tuple[object, bool]] = {}
        self._closed: dict[int, tuple[object, compat.ClosedJaxpr]] = {}

    def closed(self, closed: compat.ClosedJaxpr) -> compat.ClosedJaxpr:
        if not self._has_keys(closed.jaxpr):
            return closed
        known = self._closed.get(id(closed))
        if known is None:
            known = self._closed[id(closed)] = closed, self._converted(closed)
        return known[1]

    def _converted(self, closed: compat.ClosedJaxpr) -> compat.ClosedJaxpr:
        jaxpr = closed.jaxpr
        count = len(jaxpr.constvars)

        def run(*values: Any) -> list[Any]:
            return self._run(jaxpr, values[:count], values[count:])

        structs = tuple(compat.plain(v.aval) for v in (*jaxpr.constvars, *jaxpr.invars))
        traced, _ = compat.make_jaxpr(run, structs)
        constants = [compat.plain_array(constant) for constant in closed.consts]
        return compat.with_constants(traced, constants, jaxpr)

    def _has_keys(self, jaxpr: compat.Jaxpr) -> bool:
        known = self._keyed.get(id(jaxpr))
        if known is None:
            known = self._keyed[id(jaxpr)] = jaxpr, self._find_keys(jaxpr)
        return known[1]

    def _find_keys(self, jaxpr: compat.Jaxpr) -> bool:
        if any(_is_key(v) for v in (*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars)):
            return True
        return any(
            any(map(_is_key, (*e.invars, *e.outvars))) or self._calls_keys(e) for e in jaxpr.eqns
        )

    def _calls_keys(self, equation: compat.Equation) -> bool:
        for body in compat.inner_jaxprs(equation):
            if self._has_keys(body.jaxpr if isinstance(body, compat.ClosedJaxpr) else body):
                return True
        return False

    def _run(
        self, jaxpr: compat.Jaxpr, constants: Sequence[Any], operands: Sequence[Any]
    ) -> list[Any]:
        """The results of ``jaxpr`` on integers in place of keys."""
        known: dict[compat.Var, Any] = dict(zip(jaxpr.constvars, constants, strict=True))
        known.update(zip(jaxpr.invars, operands, strict=True))

        def read(atom: compat.Atom) -> Any:
            if isinstance(atom, compat.Literal):
                return compat.plain_array(atom.val)
            return known[atom]

        for equation in jaxpr.eqns:
            with compat.under(equation):
                results = self._results(equation, [read(atom) for atom in equation.invars])
            known.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _results(self, equation: compat.Equation, values: list[Any]) -> list[Any]:
        name, params = equation.primitive.name, equation.params
        if self._calls_keys(equation):
            return self._call(equation, values)
        if not any(map(_is_key, (*equation.invars, *equation.outvars))):
            return compat.rebind(equation, values, params)
        if name in compat.ON_KEYS:
            avals = tuple(atom.aval for atom in equation.invars)
            traced, _ = compat.make_jaxpr(
                lambda *raw: compat.ON_KEYS[name](avals, params, *raw),
                tuple(compat.plain(aval) for aval in avals),
            )
            # The implementation of one primitive may be written with typed keys again.
            return self._run(traced.jaxpr, traced.consts, values)
        return self._moved(equation, values)

    def _call(self, equation: compat.Equation, values: list[Any]) -> list[Any]:
        params = equation.params
        body = params.get("call_jaxpr") or (
            params["jaxpr"] if equation.primitive.name in INLINED else None
        )
        if isinstance(body, compat.ClosedJaxpr):
            return self._run(body.jaxpr, list(map(compat.plain_array, body.consts)), values)
        if body is not None:
            return self._run(body, (), values)
        return compat.rebind(equation, values, {k: self._replaced(v) for k, v in params.items()})

    def _replaced(self, parameter: Any) -> Any:
        if isinstance(parameter, compat.ClosedJaxpr):
            return self.closed(parameter)
        if isinstance(parameter, tuple):
            return tuple(self._replaced(item) for item in parameter)
        return parameter

    def _moved(self, equation: compat.Equation, values: list[Any]) -> list[Any]:
        """Whatever moves keys moves their integers alike, so it is mapped over those."""
        compare = COMPARED.get(equation.primitive.name)
        if compare is None and not all(map(_is_key, equation.outvars)):
            raise Unsupported(
                "E102",
                f"primitive {equation.primitive.name!r} is not supported on PRNG keys",
                at=place(equation),
                why="keys can be moved and compared, and what else it does with them is unknown",
                fix="use jax.random.key_data, and compute with its integers",
            )

        def apply(*operands: Any) -> list[Any]:
            return compat.rebind(equation, operands, equation.params)

        axes = tuple(-1 if _is_key(atom) else None for atom in equation.invars)
        results: list[Any] = jax.vmap(apply, in_axes=axes, out_axes=-1)(*values)
        return results if compare is None else [compare(r, axis=-1) for r in results]
