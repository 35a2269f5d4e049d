"""Find everything in a jaxpr that has no lowering, and report it together.

This runs before the graph is built, so a user sees all problems at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from smelt.errors import ErrorList, Unsupported
from smelt.frontends.jax import compat, registry
from smelt.frontends.jax.element_types import has_onnx_type
from smelt.frontends.jax.interpreter import bodies, live_equations
from smelt.frontends.jax.source_lines import Call, place

SHOWN = 4
"""How many source lines an error lists for one primitive."""

_CALLBACK = (
    "it calls a Python function during a run, and a model cannot run Python",
    "compute with jax.numpy instead, or outside the traced function; checks by"
    " equinox.error_if are left out unless the trace is strict",
)
_TOKEN = ("it orders side effects, and a model has none", "remove the side effects")
REFUSED = {
    **dict.fromkeys(("pure_callback", "io_callback"), _CALLBACK),
    **dict.fromkeys(("after_all", "create_token"), _TOKEN),
    "pallas_call": (
        "it is a kernel for an accelerator",
        "let JAX interpret the kernel, by pallas_call(..., interpret=True), or call the library's"
        ' reference implementation, such as implementation="xla" of jax.nn.dot_product_attention',
    ),
    "ragged_all_to_all": (
        "it moves rows between devices, and a model runs on one",
        "trace what one device computes",
    ),
}
"""Primitives that cannot have a lowering: the reason and the fix."""


def check_supported(jaxpr: compat.Jaxpr) -> None:
    """Raise one ErrorList for everything in ``jaxpr`` that has no lowering.

    E101: primitives; E106: parameters that the lowering does not know; E105: element types that
    ONNX lacks.
    """
    problems: dict[tuple[str, str, str], tuple[list[str], str]] = {}  # to places and jaxpr text
    pending = [(jaxpr, Call())]
    while pending:
        body, call = pending.pop()
        inner: list[tuple[compat.Jaxpr, Call]] = []
        for equation in live_equations(body):
            for problem in _problems(equation):
                places, _ = problems.setdefault(problem, ([], _text(equation)))
                places.append(call.place(equation))
            if registry.find(equation.primitive.name) is None:
                continue
            inner += [(inside, call.inner(equation, inside, "")) for inside in bodies(equation)]
        pending.extend(reversed(inner))
    if problems:
        raise ErrorList(_error(*key, *problems[key]) for key in sorted(problems))


def check_nothing_left_out(jaxpr: compat.Jaxpr) -> None:
    """Raise an ErrorList of E101 for prints and other debugging, which a model cannot hold."""
    debugging: dict[str, list[str]] = {}  # primitive to places
    pending = [jaxpr]
    for body in pending:
        for equation in body.eqns:
            inside = list(bodies(equation))
            pending += inside
            if not inside and compat.is_debugging(equation):
                debugging.setdefault(equation.primitive.name, []).append(place(equation))
    if debugging:
        raise ErrorList(
            Unsupported(
                "E101",
                f"primitive {name!r} would be left out of the model, and the trace is strict",
                at=[at for at in dict.fromkeys(places) if at][:SHOWN],
                why="it runs Python for debugging, and a model cannot run Python",
                fix="remove it, or trace without strict",
            )
            for name, places in sorted(debugging.items())
        )


def _problems(equation: compat.Equation) -> Iterator[tuple[str, str, str]]:
    """Yield code, primitive and detail of each problem of ``equation``."""
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


def _text(equation: compat.Equation) -> str:
    """Return the equation as jaxprs print it, with types in place of names."""
    outputs = ", ".join(compat.short(v) for v in equation.outvars)
    inputs = ", ".join(compat.short(v) for v in equation.invars)
    return f"{outputs} = {equation.primitive.name} {inputs}"


def _error(code: str, name: str, detail: str, places: list[str], text: str) -> Unsupported:
    """Return the error for one problem at all of its places.

    ``detail`` is the unknown parameter or the element type; ``text`` is the first equation.
    """
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
            fix="split complex numbers into parts"
            if detail.startswith("complex")
            else "convert to a type that ONNX has, outside of the function",
        )
    return Unsupported(
        code,
        f"parameter {detail!r} of primitive {name!r} is not known to its lowering{times}",
        at=at or [f"(jaxpr: {text})"],
        why="another JAX release may have added it; leaving it out could change results",
        fix="use the JAX release in constraints.txt, or extend the lowering",
    )
