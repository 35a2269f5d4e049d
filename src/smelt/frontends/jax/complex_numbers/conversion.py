"""A jaxpr traced once more, with a pair of real arrays for each complex one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from smelt.errors import ErrorList, Unsupported
from smelt.frontends.jax import compat
from smelt.frontends.jax.complex_numbers import rules
from smelt.frontends.jax.complex_numbers.parts import (
    Value,
    flat,
    grouped,
    is_complex,
    parts_of,
    real_dtype,
)
from smelt.frontends.jax.engine import live_equations
from smelt.frontends.jax.functions import marks
from smelt.frontends.jax.places import place

BODIES = ("call_jaxpr", "jaxpr")
"""Where a call keeps what it calls."""

LOOPS = ("while", "scan", "cond")


def without_complex(closed: compat.ClosedJaxpr) -> compat.ClosedJaxpr:
    """``closed`` without complex numbers inside; it must have none at its interface.

    Raises an ErrorList of Unsupported E105 for all primitives that have no rule for them.
    """
    if not _uses_complex(closed.jaxpr):
        return closed
    unknown = _unknown(closed.jaxpr)
    if unknown:
        raise ErrorList(_error(name, equation) for name, equation in sorted(unknown.items()))
    return _converted(closed)


def _dtype(atom: compat.Atom) -> Any:
    return getattr(atom.aval, "dtype", None)


def _is_complex(atom: compat.Atom) -> bool:
    return is_complex(_dtype(atom))


def _touches(equation: compat.Equation) -> bool:
    return any(map(_is_complex, (*equation.invars, *equation.outvars)))


def _bodies(equation: compat.Equation) -> list[compat.Jaxpr]:
    found = compat.inner_jaxprs(equation)
    return [body.jaxpr if isinstance(body, compat.ClosedJaxpr) else body for body in found]


def _uses_complex(jaxpr: compat.Jaxpr) -> bool:
    return any(map(_is_complex, jaxpr.constvars)) or any(
        _touches(equation) or any(map(_uses_complex, _bodies(equation))) for equation in jaxpr.eqns
    )


def _is_call(equation: compat.Equation) -> bool:
    """Whether it hands its operands to one body, and the results of that back."""
    if equation.primitive.name in LOOPS:
        return False
    body = _body(equation)
    if body is None:
        return False
    jaxpr = body.jaxpr if isinstance(body, compat.ClosedJaxpr) else body
    sizes = len(jaxpr.invars), len(jaxpr.outvars)
    return sizes == (len(equation.invars), len(equation.outvars))


def _body(equation: compat.Equation) -> Any:
    return next((equation.params[name] for name in BODIES if name in equation.params), None)


def _unknown(jaxpr: compat.Jaxpr) -> dict[str, compat.Equation]:
    """The first use of each primitive without a rule for complex numbers."""
    found: dict[str, compat.Equation] = {}
    for equation in live_equations(jaxpr):
        name = equation.primitive.name
        nested = name in LOOPS or _is_call(equation)
        if _touches(equation) and not nested and rules.find(name) is None:
            found.setdefault(name, equation)
        if nested:
            for body in _bodies(equation):
                found = {**_unknown(body), **found}
    return found


def _error(name: str, equation: compat.Equation) -> Unsupported:
    return Unsupported(
        "E105",
        f"primitive {name!r} is not supported on complex numbers",
        at=place(equation),
        why="ONNX has no complex operators, and no rule writes this one with real numbers",
        fix="compute it from the real and imaginary parts",
    )


def _converted(closed: compat.ClosedJaxpr) -> compat.ClosedJaxpr:
    """``closed`` with two operands, constants and results for each complex one."""
    jaxpr, count = closed.jaxpr, len(closed.jaxpr.constvars)
    inputs = [*jaxpr.constvars, *jaxpr.invars]
    complex_ones = [_is_complex(variable) for variable in inputs]

    def run(*arrays: Any) -> list[Any]:
        values = grouped(arrays, complex_ones)
        return flat(_run(jaxpr, values[:count], values[count:]))

    structs = [struct for variable in inputs for struct in _structs(variable.aval)]
    traced, _ = compat.make_jaxpr(run, tuple(structs))
    return compat.with_constants(traced, flat(map(parts_of, closed.consts)), jaxpr)


def _structs(aval: compat.Aval) -> list[Any]:
    shape, weak = tuple(aval.shape), bool(getattr(aval, "weak_type", False))
    if is_complex(aval.dtype):
        return [compat.struct(shape, real_dtype(aval.dtype))] * 2
    return [compat.struct(shape, aval.dtype, weak)]


def _run(jaxpr: compat.Jaxpr, constants: Sequence[Value], operands: Sequence[Value]) -> list[Value]:
    known: dict[compat.Var, Value] = dict(zip(jaxpr.constvars, constants, strict=True))
    known.update(zip(jaxpr.invars, operands, strict=True))

    def read(atom: compat.Atom) -> Value:
        if isinstance(atom, compat.Literal):
            return parts_of(np.asarray(atom.val, _dtype(atom)))
        return known[atom]

    for equation in live_equations(jaxpr):
        with compat.under(equation):
            results = _results(equation, [read(atom) for atom in equation.invars])
        known.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _results(equation: compat.Equation, values: list[Value]) -> Sequence[Value]:
    name = equation.primitive.name
    inner = any(map(_uses_complex, _bodies(equation)))
    if not inner and not _touches(equation):
        return compat.rebind(equation, values, equation.params)
    if name in LOOPS:
        return _loop(equation, values)
    if _is_call(equation):
        body = _body(equation)
        marked = marks.read(str(equation.params.get("name", ""))) is not None
        if marked and not _touches(equation):
            params = {key: _replaced(value) for key, value in equation.params.items()}
            return compat.rebind(equation, values, params)
        if isinstance(body, compat.ClosedJaxpr):
            return _run(body.jaxpr, list(map(parts_of, body.consts)), values)
        return _run(body, (), values)
    rule = rules.find(name)
    if rule is None:  # A computation inside a reduction, which only its own primitive understands.
        raise _error(name, equation)
    return rule(equation, values)


COUNTS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "while": {
        "cond_nconsts": ("", "cond_nconsts"),
        "body_nconsts": ("cond_nconsts", "body_nconsts"),
    },
    "scan": {"num_consts": ("", "num_consts"), "num_carry": ("num_consts", "num_carry")},
    "cond": {},
}
"""Parameters that count operands: how many come before, and how many they were."""


def _loop(equation: compat.Equation, values: list[Value]) -> list[Value]:
    """Its bodies converted, and its operands counted anew."""
    params = {name: _replaced(value) for name, value in equation.params.items()}
    for name, (start, count) in COUNTS[equation.primitive.name].items():
        first = int(equation.params[start]) if start else 0
        # The index of a cond is no operand of its branches, but real, so it changes no count.
        params[name] = len(flat(values[first : first + int(equation.params[count])]))
    if "linear" in params:
        params["linear"] = (False,) * len(flat(values))
    results = compat.rebind(equation, flat(values), params)
    return grouped(results, [_is_complex(variable) for variable in equation.outvars])


def _replaced(parameter: Any) -> Any:
    if isinstance(parameter, compat.ClosedJaxpr):
        return _converted(parameter)
    if isinstance(parameter, tuple):
        return tuple(_replaced(item) for item in parameter)
    return parameter
