"""Functions whose result depends on size comparisons: trace one case each, and choose at run time.

Code such as ``if x.shape[0] > 3`` asks a question that the symbols leave open. The function is
traced once for each answer, and the model decides by its inputs. A case that the function itself
rejects, as by ``raise ValueError`` for too few points, is left out.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import jax

from smelt.errors import SmeltError
from smelt.frontends.jax import compat
from smelt.frontends.jax.compat import SymbolicScope
from smelt.frontends.jax.multiples import callers_symbol, in_callers_names
from smelt.frontends.jax.open_comparisons import assuming_false
from smelt.frontends.jax.size_advice import Way, as_python, ways_of
from smelt.frontends.jax.size_examples import examples, of_numbers, remaining_sizes, stated
from smelt.frontends.jax.symbols import symbols_in

LIMIT = 16
"""How often a function is traced for its cases before the trace gives up."""

Traced: TypeAlias = tuple[compat.ClosedJaxpr, Any]
"""A jaxpr, and the output tree of the function."""

Trace: TypeAlias = Callable[[Any], Traced]
"""A function that traces for a pytree of ``ShapeDtypeStruct``."""


@dataclass(frozen=True)
class Leaf:
    """The trace of one case; its dims belong to ``scope``."""

    closed: compat.ClosedJaxpr
    out: Any
    scope: SymbolicScope | None


@dataclass(frozen=True)
class Choice:
    """Several cases: the model takes the first one whose ``Way`` holds; at least one holds."""

    ways: tuple[Way, ...]
    cases: tuple[Case, ...]


Case: TypeAlias = Choice | Leaf

Found: TypeAlias = Choice | Leaf | SmeltError | None
"""The cases for some sizes, or the error; None if the function itself raises for them."""


def leaves_of(case: Case) -> list[Leaf]:
    """Return the leaves of ``case`` in order."""
    if isinstance(case, Leaf):
        return [case]
    return [leaf for inner in case.cases for leaf in leaves_of(inner)]


def with_jaxprs(case: Case, change: Callable[[compat.ClosedJaxpr], compat.ClosedJaxpr]) -> Case:
    """Return ``case`` with the jaxpr of each leaf replaced by ``change(jaxpr)``."""
    if isinstance(case, Leaf):
        return Leaf(change(case.closed), case.out, case.scope)
    return Choice(case.ways, tuple(with_jaxprs(inner, change) for inner in case.cases))


def single_case(trace: Trace, structs: Any) -> Case:
    """Return the trace for ``structs`` as a single case."""
    return Leaf(*trace(structs), None)


def suggest_numbers(trace: Trace, structs: Any, error: SmeltError) -> None:
    """Add to ``error``, an E113 for open sizes, that numbers work, if ``trace`` succeeds for
    some."""
    dims = [dim for leaf in compat.leaves(structs) for dim in leaf.shape]
    names = sorted({name for dim in dims for name in symbols_in(dim)})
    scope = next((compat.scope_of(dim) for dim in dims if compat.is_symbolic(dim)), None)
    if error.code != "E113" or scope is None:
        return
    for sizes in examples(structs, compat.constraints_in(scope)):
        with suppress(SmeltError):
            trace(of_numbers(structs, sizes))
            given = dict(callers_symbol(name, sizes[name]) for name in names)
            works = ", ".join(f"{name} = {size}" for name, size in given.items())
            advice = f"it works for {works}: give {' or '.join(given)} as a number"
            error.fix = f"{error.fix}; {advice}" if error.fix else advice
            return


def split_by_sizes(trace: Trace, structs: Any) -> Case:
    """Return the trace for ``structs``, in as many cases as the function's comparisons need.

    Raises the first error if its cases do not help, are too many, or return other types. Warns of
    the cases, and of sizes for which the function raises.
    """
    search = _Search(trace)
    dims = [dim for leaf in compat.leaves(structs) for dim in leaf.shape]
    scope = next((compat.scope_of(dim) for dim in dims if compat.is_symbolic(dim)), None)
    case = search.cases_of(structs, scope, frozenset())
    if isinstance(case, Choice) and search.first is not None:
        if not _is_of_one_type(case):
            raise search.first
        asked = in_callers_names(" or ".join(way.text for way in case.ways))
        warnings.warn(
            f"the model holds {len(leaves_of(case))} cases of sizes, because {asked} makes a"
            f" difference{' at '.join(('', *search.first.at))}; a constraint leaves one of them",
            stacklevel=5,
        )
    return case


@dataclass
class _Search:
    """One search for cases; it counts traces and keeps the first error."""

    trace: Trace
    count: int = 0
    first: SmeltError | None = None
    raised: SmeltError | None = None
    """The error that the function raises for all sizes of some case."""

    def cases_of(self, structs: Any, scope: SymbolicScope | None, asked: frozenset[str]) -> Case:
        """Return the cases for ``structs``; ``asked`` holds the questions that are decided
        already."""
        self.count += 1
        try:
            return Leaf(*self.trace(structs), scope)
        except SmeltError as error:
            ways = ways_of(error)
            question = " ".join(sorted(way.text for way in ways))
            if scope is None or not ways or question in asked or self.count + len(ways) > LIMIT:
                raise
            self.first = self.first or error
            found = [self._cases_of_way(way, structs, scope, asked | {question}) for way in ways]
            chosen = _chosen(ways, found)
            if isinstance(chosen, SmeltError):
                raise _with_case_advice(error, ways, found) from error.__cause__
            if chosen is None:  # Every case raises, so the comparison is not the cause.
                told = self.raised or error
                raise told from told.__cause__
        return chosen

    def _cases_of_way(
        self, way: Way, structs: Any, scope: SymbolicScope, asked: frozenset[str]
    ) -> Found:
        """Return the cases for sizes that satisfy ``way``, or the error; None if there are none."""
        said = stated([*compat.constraints_in(scope), *way.constraints])
        if said is None:
            return None
        try:
            with assuming_false(way.assumed) if way.assumed else nullcontext():
                return self._cases_stating(said, structs, asked)
        except SmeltError as error:
            if self._raises_for_numbers(error, way, structs, scope):
                self.raised = error
                warnings.warn(
                    in_callers_names(
                        f"the model is not for sizes of which {way.text}, for which {error.what}:"
                        f" {error.why}"
                    ),
                    stacklevel=6,
                )
                return None
            few = remaining_sizes(way.text, said)
            if not few:
                return error
        ways = tuple(Way(text, (text,)) for text in few)
        return _chosen(ways, [self._cases_of_way(each, structs, scope, asked) for each in ways])

    def _cases_stating(self, said: Sequence[str], structs: Any, asked: frozenset[str]) -> Case:
        """Return the cases for sizes that satisfy the constraints ``said``.

        They get a scope of their own. JAX caches inner traces by scope, so no other trace reuses
        facts that hold for these sizes only.
        """
        scope = SymbolicScope(said)
        return self.cases_of(jax.tree.map(partial(_restated, scope), structs), scope, asked)

    def _raises_for_numbers(
        self, error: SmeltError, way: Way, structs: Any, scope: SymbolicScope
    ) -> bool:
        """True if the function raises the same error for numbers that satisfy ``way``."""
        if error.code != "E113" or ways_of(error):
            return False
        tried = examples(structs, [way.text, *compat.constraints_in(scope)])
        return bool(tried) and all(self._raises(error, of_numbers(structs, n)) for n in tried)

    def _raises(self, error: SmeltError, structs: Any) -> bool:
        try:
            self.trace(structs)
        except SmeltError as raised:
            return (raised.code, raised.what) == (error.code, error.what)
        return False


def _chosen(ways: Sequence[Way], found: Sequence[Found]) -> Found:
    """Return the choice among the cases ``found`` for ``ways``, or the first error among them."""
    failed = [case for case in found if isinstance(case, SmeltError)]
    if failed:
        return failed[0]
    pairs = [(w, c) for w, c in zip(ways, found, strict=True) if isinstance(c, Choice | Leaf)]
    if len(pairs) < 2:
        return pairs[0][1] if pairs else None
    return Choice(tuple(way for way, _ in pairs), tuple(case for _, case in pairs))


_ONE = re.compile(r"\w+ (<= 1|== \d+)")
"""A constraint that leaves a symbol a single value."""


def _with_case_advice(error: SmeltError, ways: Sequence[Way], found: Sequence[Found]) -> SmeltError:
    """Return ``error`` with a fix that names the ways of several sizes that have cases."""
    working = [
        way
        for way, case in zip(ways, found, strict=True)
        if isinstance(case, Choice | Leaf) and not _ONE.fullmatch(way.text)
    ]
    helpful = [f"'{as_python(text)}'" for way in working for text in way.constraints[:1]]
    if error.code == "E112" and len(helpful) < len(ways):
        said = f"say more by a constraint, {' or '.join(helpful)}; or " if helpful else ""
        error.fix = f"{said}give the dim as a number"
    return error


def _restated(scope: SymbolicScope, struct: Any) -> Any:
    shape = tuple(dim_in(scope, str(dim)) for dim in struct.shape)
    return compat.struct(shape, struct.dtype, struct.weak_type)


def dim_in(scope: SymbolicScope, text: str) -> compat.Dim:
    """Return the dim written as ``text``, with the constraints of ``scope``."""
    return compat.symbolic_shape(f"({text},)", scope)[0]


def input_types(case: Case, structs: Sequence[Any]) -> list[compat.Aval]:
    """Return the input types of all cases; ``structs`` specify the first inputs."""
    types = [variable.aval for variable in leaves_of(case)[-1].closed.jaxpr.invars]
    if isinstance(case, Leaf):
        return types
    for place, struct in enumerate(structs):
        # Keys and complex numbers have a dim more in a model.
        shape = (*struct.shape, *types[place].shape[len(struct.shape) :])
        types[place] = compat.ShapedArray(shape, types[place].dtype)
    return types


def _is_of_one_type(case: Choice) -> bool:
    """True if the results of all cases differ only in their dims."""
    leaves = leaves_of(case)
    if len({jax.tree.structure(leaf.out) for leaf in leaves}) != 1:
        return False
    rows = zip(*(leaf.closed.jaxpr.outvars for leaf in leaves), strict=True)
    return all(len({(atom.aval.dtype, atom.aval.ndim) for atom in row}) == 1 for row in rows)


def result_types(case: Case) -> list[compat.Aval]:
    """Return the result types of all cases; a dim that differs between cases gets a new name."""
    leaves = leaves_of(case)
    if isinstance(case, Leaf):
        return [variable.aval for variable in case.closed.jaxpr.outvars]
    rows = zip(*(leaf.closed.jaxpr.outvars for leaf in leaves), strict=True)
    taken = {name for leaf in leaves for name in _symbols(leaf.closed.jaxpr.invars)}
    names = (f"size_{i}" for i in itertools.count())
    fresh = (name for name in names if name not in taken)
    scope = SymbolicScope()

    def common(row: Sequence[compat.Atom]) -> compat.Aval:
        dims = zip(*(atom.aval.shape for atom in row), strict=True)
        texts = [_common(each, [leaf.scope for leaf in leaves]) or next(fresh) for each in dims]
        shape = tuple(dim_in(scope, text) for text in texts)
        return compat.ShapedArray(shape, row[0].aval.dtype)

    return [common(row) for row in rows]


def _symbols(atoms: Sequence[compat.Atom]) -> list[str]:
    return [name for atom in atoms for dim in atom.aval.shape for name in symbols_in(dim)]


def _common(dims: Sequence[compat.Dim], scopes: Sequence[SymbolicScope | None]) -> str:
    """Return the text of the dim that all of ``dims`` equal in their ``scopes``; empty if none."""
    texts = sorted({str(dim) for dim in dims}, key=lambda text: text.isdecimal())
    for text in texts:
        if all(
            str(dim) == (text if scope is None else str(dim_in(scope, text)))
            for dim, scope in zip(dims, scopes, strict=True)
        ):
            return text
    return ""
