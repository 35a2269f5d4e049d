"""The traces of one function for several cases of sizes, and the types that they share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax

from smelt.frontends.jax import compat
from smelt.frontends.jax.compat import SymbolicScope
from smelt.frontends.jax.open_sizes.size_advice import SizeCase
from smelt.frontends.jax.open_sizes.symbols import symbols_in


@dataclass(frozen=True)
class Leaf:
    """The trace of one case; its dims belong to ``scope``."""

    closed: compat.ClosedJaxpr
    out: Any
    scope: SymbolicScope | None


@dataclass(frozen=True)
class Choice:
    """Several cases: the model takes the first one whose condition holds; at least one holds.

    ``conditions[i]`` is the condition of ``cases[i]``.
    """

    conditions: tuple[SizeCase, ...]
    cases: tuple[Case, ...]


Case: TypeAlias = Choice | Leaf


def leaves_of(case: Case) -> list[Leaf]:
    """Return the leaves of ``case`` in order."""
    if isinstance(case, Leaf):
        return [case]
    return [leaf for inner in case.cases for leaf in leaves_of(inner)]


def with_jaxprs(case: Case, change: Callable[[compat.ClosedJaxpr], compat.ClosedJaxpr]) -> Case:
    """Return ``case`` with the jaxpr of each leaf replaced by ``change(jaxpr)``."""
    if isinstance(case, Leaf):
        return Leaf(change(case.closed), case.out, case.scope)
    return Choice(case.conditions, tuple(with_jaxprs(inner, change) for inner in case.cases))


def dim_in(scope: SymbolicScope, text: str) -> compat.Dim:
    """Return the dim written as ``text``, with the constraints of ``scope``."""
    return compat.symbolic_shape(f"({text},)", scope)[0]


def input_types(case: Case, structs: Sequence[Any]) -> list[compat.Aval]:
    """Return the types of the inputs, which all cases share; ``structs`` specify the first inputs.

    A case may replace symbols by numbers, so the shapes of the first inputs come from ``structs``.
    """
    types = [variable.aval for variable in leaves_of(case)[-1].closed.jaxpr.invars]
    if isinstance(case, Leaf):
        return types
    for position, struct in enumerate(structs):
        # Arrays of keys and of complex numbers have one more dim in a model.
        shape = (*struct.shape, *types[position].shape[len(struct.shape) :])
        types[position] = compat.ShapedArray(shape, types[position].dtype)
    return types


def have_one_type(case: Choice) -> bool:
    """True if the results of all cases have the same structure, dtypes and ranks."""
    leaves = leaves_of(case)
    if len({jax.tree.structure(leaf.out) for leaf in leaves}) != 1:
        return False
    rows = zip(*(leaf.closed.jaxpr.outvars for leaf in leaves), strict=True)
    return all(len({(atom.aval.dtype, atom.aval.ndim) for atom in row}) == 1 for row in rows)


def result_types(case: Case) -> list[compat.Aval]:
    """Return the result types that cover all cases; a dim that differs gets a new name."""
    leaves = leaves_of(case)
    if isinstance(case, Leaf):
        return [variable.aval for variable in case.closed.jaxpr.outvars]
    rows = zip(*(leaf.closed.jaxpr.outvars for leaf in leaves), strict=True)
    used_names = {name for leaf in leaves for name in _symbols(leaf.closed.jaxpr.invars)}
    names = (f"size_{i}" for i in itertools.count())
    fresh = (name for name in names if name not in used_names)
    scope = SymbolicScope()

    def common(row: Sequence[compat.Atom]) -> compat.Aval:
        """Return the type that covers one result in all cases."""
        dims = zip(*(atom.aval.shape for atom in row), strict=True)
        scopes = [leaf.scope for leaf in leaves]
        texts = [_common_dim(dims_of_axis, scopes) or next(fresh) for dims_of_axis in dims]
        shape = tuple(dim_in(scope, text) for text in texts)
        return compat.ShapedArray(shape, row[0].aval.dtype)

    return [common(row) for row in rows]


def _symbols(atoms: Sequence[compat.Atom]) -> list[str]:
    """Return the symbols in the shapes of ``atoms``."""
    return [name for atom in atoms for dim in atom.aval.shape for name in symbols_in(dim)]


def _common_dim(dims: Sequence[compat.Dim], scopes: Sequence[SymbolicScope | None]) -> str:
    """Return the text of a dim that equals each of ``dims`` in its scope; empty if there is none.

    A symbolic dim is preferred: in the scope of ``N == 3``, the dim ``N`` equals 3.
    """
    texts = sorted({str(dim) for dim in dims}, key=lambda text: text.isdecimal())
    for text in texts:
        if all(
            str(dim) == (text if scope is None else str(dim_in(scope, text)))
            for dim, scope in zip(dims, scopes, strict=True)
        ):
            return text
    return ""
