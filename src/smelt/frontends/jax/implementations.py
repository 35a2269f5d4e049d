"""Primitives of libraries that are no more than the JAX code that implements them.

equinox, lineax, diffrax and others bind primitives with rules of their own for derivatives and for
batches, such as ``linear_solve`` or ``nonbatchable``. Their implementations are functions of JAX,
so the equations that these trace to stand for them. Implementations that run a kernel or call
Python have no equations: their primitives stay, and are refused as having no lowering.
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
"""The primitive that runs what ``jax.export`` gave."""

SPARSE = "jax.experimental.sparse."
"""Where JAX has primitives that code of its own computes, in the module that begins their names."""


def inlined(closed: compat.ClosedJaxpr) -> compat.ClosedJaxpr:
    """``closed`` with what is implemented by JAX code as the equations of that code."""
    return convert(closed, _IMPLEMENTED)


def _is_implemented(equation: compat.Equation) -> bool:
    """True if its primitive has no lowering, but an implementation that is not of JAX itself, or
    of its sparse arrays; or if it calls an exported function, whose program can be read."""
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
    """What computes ``primitive``. Of some, JAX runs the lowering of the function of this name."""
    name = str(primitive.name)
    module = sys.modules.get(SPARSE + name.partition("_")[0])
    return getattr(module, f"_{name}_impl", primitive.impl)


def _apply(equation: compat.Equation, values: list[Any], run: Run) -> list[Any]:
    if equation.primitive.name == EXPORTED:
        # Programs may compute with 64 bits inside, as those do that draw random numbers.
        with compat.x64(True):
            return evaluated(equation.params["exported"], values)
    if references.is_of_kernel(equation):
        implementation = references.arrays_of_kernel(equation)
    else:
        implementation = functools.partial(_implementation(equation.primitive), **equation.params)
    structs = tuple(compat.struct_of(atom.aval) for atom in equation.invars)
    try:
        traced, _ = compat.make_jaxpr(implementation, structs)
    except Exception as error:  # it is no code that can be traced, whatever it says
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
