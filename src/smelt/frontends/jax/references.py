"""Mutable references, as ``jax.new_ref`` makes them, as the arrays that they hold."""

from __future__ import annotations

from smelt.errors import Unsupported
from smelt.frontends.jax import compat
from smelt.frontends.jax.source_lines import place


def without_references(closed: compat.ClosedJaxpr) -> compat.ClosedJaxpr:
    """Return ``closed`` with a new array for each write to a reference, by JAX's own rules.

    Raises Unsupported E102 for a reference that ``closed`` does not make itself, and for a
    primitive that JAX cannot free of references.
    """
    if not compat.is_stateful(closed):
        return closed
    _check_own(closed)
    try:
        return compat.without_references(closed)
    except NotImplementedError as error:
        raise Unsupported(
            "E102",
            "a reference is used where JAX itself has no rule for it",
            at=[place(equation) for equation in closed.jaxpr.eqns if compat.is_stateful(equation)],
            why=str(error),
            fix="carry the array through the loop or the call instead, and return it",
        ) from error


def _check_own(closed: compat.ClosedJaxpr) -> None:
    """Raise Unsupported E102 if ``closed`` reads or writes a reference from outside of it."""
    pairs = zip(closed.jaxpr.constvars, closed.consts, strict=True)
    captured = [variable for variable, constant in pairs if compat.is_reference(constant)]
    if not captured:
        return
    users = (e for e in closed.jaxpr.eqns if any(atom in captured for atom in e.invars))
    raise Unsupported(
        "E102",
        "the function uses a reference that is made outside of it",
        at=list(dict.fromkeys(map(place, users))),
        why="a model keeps nothing from one run to the next",
        fix="take the array as an argument, make the reference of it inside by jax.new_ref, and"
        " return what it holds at the end",
    )
