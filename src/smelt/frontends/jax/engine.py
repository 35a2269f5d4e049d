"""Walks a jaxpr, equation by equation, and asks the registry by name. Knows no operator.

Everything that cannot be lowered is found before anything is built, and reported together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from smelt.errors import ErrorList, InternalError, Unsupported
from smelt.frontends.jax import compat, registry
from smelt.frontends.jax.interpreter import bodies, interpret, live_equations
from smelt.frontends.jax.operand import Operand, broadcast_shapes
from smelt.frontends.jax.places import Call

if TYPE_CHECKING:
    from smelt.frontends.jax.lowering import Lowering

SHOWN = 4
"""How many places an error lists for one primitive."""

_CALLBACK = (
    "it calls a Python function while the model runs, and a model has no Python",
    "compute with jax.numpy instead, or outside the traced function; checks by"
    " equinox.error_if are left out with EQX_ON_ERROR=off in the environment",
)
_REFERENCE = (
    "it reads or writes a mutable reference, and the values of a graph do not change",
    "carry the array through the loop instead, or return it",
)
_TOKEN = ("it orders effects, and a model has none", "leave the effects out")
REFUSED = {
    **dict.fromkeys(("pure_callback", "io_callback"), _CALLBACK),
    **dict.fromkeys(("get", "swap", "addupdate"), _REFERENCE),
    **dict.fromkeys(("after_all", "create_token"), _TOKEN),
    "ragged_all_to_all": (
        "it moves rows between devices, and a model runs on one",
        "trace what one device computes",
    ),
}
"""Why primitives that can have no lowering have none, and what to do."""


def run(
    cx: Lowering,
    jaxpr: compat.Jaxpr,
    constants: Sequence[object],
    operands: Sequence[Operand],
) -> list[Operand]:
    """Lower the equations of ``jaxpr`` into the graph of ``cx``; returns its results."""
    known = [
        cx.captured(value, v.aval) for v, value in zip(jaxpr.constvars, constants, strict=True)
    ]

    def literal(atom: compat.Literal) -> Operand:
        return cx.captured(atom.val, atom.aval)

    def lowered(equation: compat.Equation, inputs: list[Operand]) -> list[Operand]:
        rule = registry.find(equation.primitive.name)
        if rule is None:
            raise InternalError("E910", f"primitive {equation.primitive.name!r} was not checked")
        with cx.at(equation, inputs):
            if not rule.broadcasts:
                pairs = zip(inputs, equation.invars, strict=True)
                cx.operands = tuple(cx.full(operand, atom) for operand, atom in pairs)
            values = (operand.value for operand in cx.operands)
            results = rule.function(cx, *values, **equation.params)
            return bound(cx, equation, results, inputs if rule.broadcasts else None)

    return interpret(jaxpr, known, operands, literal, lowered)


def bound(
    cx: Lowering,
    equation: compat.Equation,
    results: object,
    broadcast: Sequence[Operand] | None,
) -> list[Operand]:
    """The results of a lowering as operands, each checked against the type that JAX gives it.

    Raises InternalError E910 if one is missing or of another dtype, rank or static size.
    """
    listed = list(results) if isinstance(results, list | tuple) else [results]
    if len(listed) != len(equation.outvars):
        what = f"the lowering of {equation.primitive.name!r} gave {len(listed)} results"
        raise InternalError("E910", f"{what} for {len(equation.outvars)} outputs")
    outputs = []
    for result, variable in zip(listed, equation.outvars, strict=True):
        aval: compat.Aval = variable.aval
        if isinstance(result, ir.Value):
            shape = aval.shape
            if broadcast is not None:
                shape = broadcast_shapes([operand.shape for operand in broadcast])
            result = Operand(result, shape)  # noqa: PLW2901 - a result becomes an operand
        if not isinstance(result, Operand):
            what = f"the lowering of {equation.primitive.name!r} gave a {type(result).__name__}"
            raise InternalError("E910", what)
        cx.settle(result, aval, equation.primitive.name)
        outputs.append(result)
    return outputs


def check_supported(jaxpr: compat.Jaxpr) -> None:
    """Raise one ErrorList for all primitives without a lowering (E101), parameters that their
    lowering does not know (E106) and element types without an ONNX one (E105)."""
    found: dict[tuple[str, str, str], tuple[list[str], str]] = {}
    pending = [(jaxpr, Call())]
    while pending:
        body, call = pending.pop()
        inner: list[tuple[compat.Jaxpr, Call]] = []
        for equation in live_equations(body):
            for problem in _problems(equation):
                places, _ = found.setdefault(problem, ([], _text(equation)))
                places.append(call.place(equation))
            if registry.find(equation.primitive.name) is None:
                continue
            inner += [(inside, call.inner(equation, inside, "")) for inside in bodies(equation)]
        pending.extend(reversed(inner))
    if found:
        raise ErrorList(_error(*key, *found[key]) for key in sorted(found))


def _problems(equation: compat.Equation) -> Iterator[tuple[str, str, str]]:
    name = equation.primitive.name
    rule = registry.find(name)
    if rule is None:
        yield "E101", name, ""
    elif rule.parameters is not None:
        for parameter in sorted(set(equation.params) - rule.parameters):
            yield "E106", name, parameter
    for variable in equation.outvars:
        if not has_onnx_type(variable.aval):
            yield "E105", name, str(getattr(variable.aval, "dtype", variable.aval))


def has_onnx_type(aval: compat.Aval) -> bool:
    """True if ``aval`` is an array of an element type that ONNX has; complex ones are not used."""
    dtype = getattr(aval, "dtype", None)
    if dtype is None or compat.is_extended(dtype) or np.dtype(dtype).kind == "c":
        return False
    try:
        ir.DataType.from_numpy(np.dtype(dtype))
    except TypeError:
        return False
    return True


def _text(equation: compat.Equation) -> str:
    outputs = ", ".join(compat.short(v) for v in equation.outvars)
    inputs = ", ".join(compat.short(v) for v in equation.invars)
    return f"{outputs} = {equation.primitive.name} {inputs}"


def _error(code: str, name: str, detail: str, places: list[str], text: str) -> Unsupported:
    shown = list(dict.fromkeys(place for place in places if place))[:SHOWN]
    at = [f"{place} (jaxpr: {text})" if i == 0 else place for i, place in enumerate(shown)]
    times = f", met {len(places)} times" if len(places) > 1 else ""
    if code == "E101":
        return Unsupported(
            code,
            f"primitive {name!r} has no ONNX lowering{times}",
            at=at or [f"(jaxpr: {text})"],
            why=REFUSED.get(name, ("no lowering is registered under that name", ""))[0],
            fix=REFUSED.get(name, ("", ""))[1]
            or "compute it outside the traced function, or register one: docs/add-a-lowering.md",
        )
    if code == "E105":
        return Unsupported(
            code,
            f"primitive {name!r} makes values of type {detail}{times}",
            at=at or [f"(jaxpr: {text})"],
            why="ONNX has no such element type, or no operators for it",
            fix="split complex numbers into parts",
        )
    return Unsupported(
        code,
        f"parameter {detail!r} of primitive {name!r} is not known to its lowering{times}",
        at=at or [f"(jaxpr: {text})"],
        why="another JAX release may have added it; leaving it out could change results",
        fix="use the JAX release in constraints.txt, or extend the lowering",
    )
