"""Replace a library's primitive by the JAX code that implements it.

equinox, lineax, diffrax and others bind primitives with derivative and batching rules of their own,
such as ``linear_solve`` or ``nonbatchable``. Their implementations are JAX functions, so smelt
inlines the equations of these functions. An implementation that runs a kernel or calls Python has
no equations: its primitive stays, and later raises E101 because it has no lowering.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from smelt.frontends.jax import compat, frames, references, registry
from smelt.frontends.jax.representation import Representation, Run, convert
from smelt.frontends.jax.support import REFUSED
from smelt.frontends.stablehlo.exported import evaluated

EXPORTED = "call_exported"
"""The primitive that runs an exported function of ``jax.export``."""

SPARSE = "jax.experimental.sparse."
"""A package of JAX whose primitives have implementations in JAX code.

The first word of a primitive's name is the module of its implementation.
"""


def inlined(closed: compat.ClosedJaxpr) -> compat.ClosedJaxpr:
    """Return ``closed`` with the implementation's equations in place of each such primitive."""
    return convert(closed, _IMPLEMENTED)


def _is_implemented(equation: compat.Equation) -> bool:
    """True if the primitive has no lowering, but an implementation outside of JAX's core.

    JAX's sparse arrays count as outside. Also true for a call of an exported function, whose
    program can be read, and for a Pallas kernel in interpret mode.
    """
    primitive = equation.primitive
    if primitive.name == EXPORTED or references.is_of_kernel(equation):
        return True
    if primitive.name in REFUSED or registry.find(primitive.name) is not None:
        return False
    function = frames.without_partials(_implementation(primitive))
    function = getattr(function, "__func__", function)
    module = getattr(function, "__module__", None) or ""
    is_of_jax = module.partition(".")[0] in ("jax", "jaxlib", "")
    return module.startswith(SPARSE) or not is_of_jax


def _implementation(primitive: Any) -> Any:
    """Return the function that computes ``primitive``.

    For some primitives, JAX runs the lowering of the function with this name.
    """
    name = str(primitive.name)
    module = sys.modules.get(SPARSE + name.partition("_")[0])
    return getattr(module, f"_{name}_impl", primitive.impl)


def _apply(equation: compat.Equation, values: list[Any], run: Run) -> list[Any]:
    """Return the results of the implementation, or of ``equation`` if it cannot be traced."""
    if equation.primitive.name == EXPORTED:
        # Programs may compute with 64 bits inside, for example to draw random numbers.
        with compat.x64(True):
            return evaluated(equation.params["exported"], values)
    if references.is_of_kernel(equation):
        implementation = references.arrays_of_kernel(equation)
    else:
        implementation = functools.partial(_implementation(equation.primitive), **equation.params)
    structs = tuple(compat.struct_of(atom.aval) for atom in equation.invars)
    try:
        traced, _ = compat.make_jaxpr(implementation, structs)
    except Exception as error:  # the implementation cannot be traced
        if references.is_of_kernel(equation):
            raise references.refused_kernel(equation, error) from error
        return compat.rebind(equation, values, equation.params)
    return run(references.without_references(traced), values)


_IMPLEMENTED = Representation(
    concerns=lambda aval: False,
    structs=lambda aval: [compat.struct_of(aval)],
    parts=lambda array: [array],
    whole=lambda parts: parts[0],
    split=lambda array: array,
    apply=_apply,
    refusal=lambda equation: None,
    handles=_is_implemented,
)
