"""Functions that compute something else for some sizes: traced for each, and chosen between.

Code such as ``if x.shape[0] > 3`` asks what symbols leave open. The function is then traced again
for each way that the sizes can go, and the model asks the question of its inputs. A way that the
function itself refuses, as by ``raise ValueError`` for too few points, is left out.
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
from smelt.frontends.jax.open_comparisons import assuming
from smelt.frontends.jax.size_advice import Way, as_python, ways_of
from smelt.frontends.jax.size_examples import examples, few_left, of_numbers, stated
from smelt.frontends.jax.symbols import symbols_in

LIMIT = 16
"""How often a function is traced for its cases before its sizes are called open."""

Traced: TypeAlias = tuple[compat.ClosedJaxpr, Any]
"""A jaxpr, and the tree of its results."""

Trace: TypeAlias = Callable[[Any], Traced]
"""Traces a function for a pytree of ``ShapeDtypeStruct``."""


@dataclass(frozen=True)
class Leaf:
    """What a function computes for the sizes of one case, whose dims live in ``scope``."""

    closed: compat.ClosedJaxpr
    out: Any
    scope: SymbolicScope | None


@dataclass(frozen=True)
class Choice:
    """One of ``cases``: the first whose way the sizes go; they go at least one."""

    ways: tuple[Way, ...]
    cases: tuple[Case, ...]


Case: TypeAlias = Choice | Leaf

Found: TypeAlias = Choice | Leaf | SmeltError | None
"""The cases of some sizes, or why there are none; None where the function itself raises."""


def leaves_of(case: Case) -> list[Leaf]:
    """What ``case`` chooses among, in order."""
    if isinstance(case, Leaf):
        return [case]
    return [leaf for inner in case.cases for leaf in leaves_of(inner)]


def with_jaxprs(case: Case, change: Callable[[compat.ClosedJaxpr], compat.ClosedJaxpr]) -> Case:
    """``case`` with what ``change`` makes of the jaxpr of each leaf."""
    if isinstance(case, Leaf):
        return Leaf(change(case.closed), case.out, case.scope)
    return Choice(case.ways, tuple(with_jaxprs(inner, change) for inner in case.cases))


def alone(trace: Trace, structs: Any) -> Case:
    """What ``trace`` gives for ``structs``, as one case."""
    return Leaf(*trace(structs), None)


def naming_numbers(trace: Trace, structs: Any, error: SmeltError) -> None:
    """Add to ``error``, E113 for ``structs`` of open sizes, that numbers are a way out, if it is
    seen that ``trace`` works for some."""
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


def by_sizes(trace: Trace, structs: Any) -> Case:
    """What ``trace`` gives for ``structs``, in as many cases as the function asks for.

    Raises the error of ``trace`` for a question whose ways do not help, are too many, or give
    results of other types. Warns of cases, and of sizes for which the function raises.
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
    trace: Trace
    count: int = 0
    first: SmeltError | None = None
    raised: SmeltError | None = None
    """What the function raises for sizes of some way, whatever they are."""

    def cases_of(self, structs: Any, scope: SymbolicScope | None, asked: frozenset[str]) -> Case:
        self.count += 1
        try:
            return Leaf(*self.trace(structs), scope)
        except SmeltError as error:
            ways = ways_of(error)
            question = " ".join(sorted(way.text for way in ways))
            if scope is None or not ways or question in asked or self.count + len(ways) > LIMIT:
                raise
            self.first = self.first or error
            found = [self._along(way, structs, scope, asked | {question}) for way in ways]
            chosen = _chosen(ways, found)
            if isinstance(chosen, SmeltError):
                raise _helped_by(error, ways, found) from error.__cause__
            if chosen is None:  # It raises along every way, so the question is not what is wrong.
                told = self.raised or error
                raise told from told.__cause__
        return chosen

    def _along(self, way: Way, structs: Any, scope: SymbolicScope, asked: frozenset[str]) -> Found:
        """The cases of sizes that go ``way``, or why there are none; None if the function raises
        for those sizes."""
        said = stated([*compat.constraints_in(scope), *way.constraints])
        if said is None:
            return None
        try:
            with assuming(way.assumed) if way.assumed else nullcontext():
                return self._stating(said, structs, asked)
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
            few = few_left(way.text, said)
            if not few:
                return error
        ways = tuple(Way(text, (text,)) for text in few)
        return _chosen(ways, [self._along(each, structs, scope, asked) for each in ways])

    def _stating(self, said: Sequence[str], structs: Any, asked: frozenset[str]) -> Case:
        """The cases of sizes of which ``said`` is true.

        They get a scope of their own. JAX keeps what it traced of inner functions by the scope
        too, so nothing that is true of these alone is found again by another trace.
        """
        scope = SymbolicScope(said)
        return self.cases_of(jax.tree.map(partial(_restated, scope), structs), scope, asked)

    def _raises_for_numbers(
        self, error: SmeltError, way: Way, structs: Any, scope: SymbolicScope
    ) -> bool:
        """True if the function raises for numbers that go ``way`` as it does for open sizes."""
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
    """The choice among the cases that were ``found`` for ``ways``, or an error among them."""
    failed = [case for case in found if isinstance(case, SmeltError)]
    if failed:
        return failed[0]
    pairs = [(w, c) for w, c in zip(ways, found, strict=True) if isinstance(c, Choice | Leaf)]
    if len(pairs) < 2:
        return pairs[0][1] if pairs else None
    return Choice(tuple(way for way, _ in pairs), tuple(case for _, case in pairs))


_ONE = re.compile(r"\w+ (<= 1|== \d+)")
"""What leaves one size of a symbol."""


def _helped_by(error: SmeltError, ways: Sequence[Way], found: Sequence[Found]) -> SmeltError:
    """``error``, whose ways out are those of ``ways`` for which cases were ``found``: of many
    sizes, for one is given as a number."""
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
    """The dim written as ``text`` by what is known in ``scope``."""
    return compat.symbolic_shape(f"({text},)", scope)[0]


def input_types(case: Case, structs: Sequence[Any]) -> list[compat.Aval]:
    """The types of the inputs of all cases, the first of which ``structs`` specify."""
    types = [variable.aval for variable in leaves_of(case)[-1].closed.jaxpr.invars]
    if isinstance(case, Leaf):
        return types
    for place, struct in enumerate(structs):
        # Keys and complex numbers have a dim more in a model.
        shape = (*struct.shape, *types[place].shape[len(struct.shape) :])
        types[place] = compat.ShapedArray(shape, types[place].dtype)
    return types


def _is_of_one_type(case: Choice) -> bool:
    """Whether the results of all cases differ in nothing but their dims."""
    leaves = leaves_of(case)
    if len({jax.tree.structure(leaf.out) for leaf in leaves}) != 1:
        return False
    rows = zip(*(leaf.closed.jaxpr.outvars for leaf in leaves), strict=True)
    return all(len({(atom.aval.dtype, atom.aval.ndim) for atom in row}) == 1 for row in rows)


def result_types(case: Case) -> list[compat.Aval]:
    """The types of the results of all cases; dims that differ get names of their own."""
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
    """Of ``dims``, each in one of ``scopes``, the one that all are; empty if none is."""
    texts = sorted({str(dim) for dim in dims}, key=lambda text: text.isdecimal())
    for text in texts:
        if all(
            str(dim) == (text if scope is None else str(dim_in(scope, text)))
            for dim, scope in zip(dims, scopes, strict=True)
        ):
            return text
    return ""
