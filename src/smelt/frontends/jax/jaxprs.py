"""Trace a function to a jaxpr that uses only element types of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from smelt.errors import SmeltError, Unsupported
from smelt.frontends.jax import compat, failures, implementations, keys, support
from smelt.frontends.jax.call import nnx_modules, specs
from smelt.frontends.jax.call.arguments import Arguments
from smelt.frontends.jax.call.parameters import Parameters
from smelt.frontends.jax.complex_numbers import Whole, with_pairs, without_complex
from smelt.frontends.jax.element_types import has_onnx_type
from smelt.frontends.jax.functions import selection
from smelt.frontends.jax.open_sizes import open_comparisons, symbolic_numbers
from smelt.frontends.jax.open_sizes.size_cases import (
    Trace,
    single_case,
    split_by_sizes,
    suggest_numbers,
)
from smelt.frontends.jax.open_sizes.traced_cases import Case
from smelt.frontends.jax.patching import patches
from smelt.frontends.jax.patching.replacement import Replacement, replaced
from smelt.frontends.jax.references import without_references
from smelt.spans import span

SIZES = (*open_comparisons.REPLACEMENTS, *symbolic_numbers.REPLACEMENTS)
"""Replacements of methods of symbolic sizes while smelt traces."""


def with_patches(
    trace_structs: Trace, structs: Any, functions: selection.Functions, strict: bool
) -> Case:
    """Return the size cases of ``trace_structs`` for ``structs``, traced under all patches.

    A library may import another one during the trace, whose patches then come too late. So a failed
    trace runs again if there are more patches after it.
    """

    def attempt(replacements: Sequence[Replacement]) -> Case:
        """Trace under ``replacements``."""
        # Marked functions come last, so that their calls use the other replacements.
        with replaced([*SIZES, *replacements, *selection.replacements_for(functions)]):
            try:
                if strict:
                    return single_case(trace_structs, structs)
                return split_by_sizes(trace_structs, structs)
            except SmeltError as error:
                suggest_numbers(trace_structs, structs, error)
                raise

    first = patches.replacements(strict=strict)
    try:
        return attempt(first)
    except SmeltError:
        second = patches.replacements(strict=strict)
        if len(second) == len(first):
            raise
    return attempt(second)


def traced(
    fn: Callable[..., Any],
    arguments: Arguments,
    parameters: Parameters,
    x64: bool,
    strict: bool,
    structs: tuple[Any, ...],
) -> tuple[compat.ClosedJaxpr, Any]:
    """Return the jaxpr of ``fn`` and its output tree.

    The inputs of the jaxpr are the leaves of ``structs``, the specs of ``arguments``, then
    ``parameters``. ``strict`` refuses checks and prints, which a model leaves out.
    """

    def call(argument_values: Sequence[Any], parameter_values: Sequence[Any]) -> Any:
        """Return the result of ``fn``, after checks of its modules and of what it returned."""
        function, copies = parameters.function(fn, parameter_values)
        result = arguments.call(function, argument_values)
        nnx_modules.check_unchanged(copies)
        failures.check_returned(fn, compat.leaves(result))
        return result

    with compat.x64(x64):
        parameter_structs = tuple(specs.struct_of(array) for array in parameters.arrays.values())
        with span("jaxpr"):
            closed, out = compat.make_jaxpr(call, (structs, parameter_structs))
            if strict:
                support.check_nothing_left_out(closed.jaxpr)
            return implementations.inlined(without_references(closed)), out


def in_types_of_onnx(closed: compat.ClosedJaxpr, whole: Whole) -> compat.ClosedJaxpr:
    """Return ``closed`` with plain arrays in place of PRNG keys and complex numbers.

    Raises an ErrorList for primitives that have no lowering.
    """
    closed = with_pairs(keys.without_keys(closed))
    _check_interface(closed.jaxpr)
    closed = without_complex(closed, whole)
    support.check_supported(closed.jaxpr)
    return closed


def _check_interface(jaxpr: compat.Jaxpr) -> None:
    """Raise Unsupported E105 for an input or output whose element type ONNX lacks."""
    for variable in (*jaxpr.invars, *jaxpr.outvars):
        aval: compat.Aval = variable.aval
        if not has_onnx_type(aval):
            raise Unsupported(
                "E105",
                f"an input or output has the element type {aval.dtype}",
                why="ONNX has no such element type, or no operators for it",
                fix="convert it to a type that ONNX has where it enters or leaves the function",
            )
