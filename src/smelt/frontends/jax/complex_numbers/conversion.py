"""Replace each complex array of a jaxpr by a pair of real arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from smelt.errors import Unsupported
from smelt.frontends.jax import compat
from smelt.frontends.jax.complex_numbers import rules
from smelt.frontends.jax.complex_numbers.fourier import by_nodes
from smelt.frontends.jax.complex_numbers.parts import (
    Parts,
    Value,
    is_complex,
    parts_of,
    real_arrays,
    real_dtype,
)
from smelt.frontends.jax.complex_numbers.products import product, stays_whole
from smelt.frontends.jax.representation import Representation, Run, convert
from smelt.frontends.jax.source_lines import place


@dataclass(frozen=True)
class Whole:
    """Which operators on complex arrays stay one node: Fourier transforms, and products."""

    transforms: bool = False
    products: bool = False


def without_complex(closed: compat.ClosedJaxpr, whole: Whole = Whole()) -> compat.ClosedJaxpr:
    """Return ``closed`` without complex arrays inside; its inputs and outputs must be real.

    Operators that stay ``whole`` are not written with real ones. Raises an ErrorList of Unsupported
    E105, one for each primitive that has no rule for complex operands.
    """
    return convert(closed, _representation(whole))


def _structs(aval: compat.Aval) -> list[Any]:
    """Return the types of the arrays that represent ``aval``: two real ones if it is complex."""
    if is_complex(aval.dtype):
        return [compat.struct_of(aval, real_dtype(aval.dtype))] * 2
    return [compat.struct_of(aval)]


def _apply(equation: compat.Equation, values: list[Value], run: Run) -> Sequence[Value]:
    """Return the results of a primitive by its rule for complex operands.

    Raises Unsupported E105 if the primitive has no rule.
    """
    if equation.primitive.name == rules.SOLVE:
        return _linear_solve(equation, values, run)
    rule = rules.find(equation.primitive.name)
    if rule is None:
        raise _refusal_of(equation)
    return rule(equation, values)


def _linear_solve(equation: compat.Equation, values: list[Value], run: Run) -> Sequence[Value]:
    """Return the results of ``custom_linear_solve``: its solver jaxpr, run on parts.

    The operands are the constants of four jaxprs (matvec, vecmat, solve, transposed solve) and then
    the right-hand sides. The model needs only the solver.
    """
    lengths, jaxprs = equation.params["const_lengths"], equation.params["jaxprs"]
    before = lengths.matvec + lengths.vecmat
    constants = values[before : before + lengths.solve]
    return run(jaxprs.solve, [*constants, *values[sum(lengths) :]])


def _refusal(equation: compat.Equation) -> Unsupported | None:
    """Return the error E105 if the primitive of ``equation`` has no rule, else None."""
    name = equation.primitive.name
    return None if name in rules.names() else _refusal_of(equation)


def _refusal_of(equation: compat.Equation) -> Unsupported:
    """Return the error E105 for a primitive without a rule for complex numbers."""
    name = equation.primitive.name
    return Unsupported(
        "E105",
        f"primitive {name!r} is not supported on complex numbers",
        at=place(equation),
        why="ONNX has no complex operators, and no rule writes this one with real numbers",
        fix="compute it from the real and imaginary parts",
    )


_COMPLEX = Representation(
    concerns=lambda aval: is_complex(getattr(aval, "dtype", None)),
    structs=_structs,
    parts=lambda value: real_arrays([value]),
    whole=lambda parts: Parts(*parts),
    split=parts_of,
    apply=_apply,
    refusal=_refusal,
)


def _apply_or_keep(
    whole: Whole, equation: compat.Equation, values: list[Value], run: Run
) -> Sequence[Value]:
    """Return the results of a primitive as ``_apply`` does; those of ``whole`` stay a node."""
    name, params = equation.primitive.name, equation.params
    if name == "fft" and whole.transforms:
        return [by_nodes(values[0], int(params["fft_type"]), params["fft_lengths"])]
    if name == "dot_general" and whole.products and stays_whole(params, *values):
        return [product(params, *values)]
    return _apply(equation, values, run)


@cache
def _representation(whole: Whole) -> Representation:
    """Return the Representation for ``whole``: one object, by which converted jaxprs are cached."""
    return replace(_COMPLEX, apply=partial(_apply_or_keep, whole))
