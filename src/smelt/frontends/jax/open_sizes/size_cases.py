"""Functions that compare sizes: trace one case for each answer, and choose at run time.

The answer of ``if x.shape[0] > 3`` depends on the symbols. The function is traced once for each
answer, and the model chooses a case by the sizes of its inputs. A case in which the function
itself raises, as by ``raise ValueError`` for too few points, is left out.
"""

from __future__ import annotations

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
from smelt.frontends.jax.open_sizes.multiples import callers_symbol, in_callers_names
from smelt.frontends.jax.open_sizes.open_comparisons import assuming_false
from smelt.frontends.jax.open_sizes.size_advice import SizeCase, as_python, cases_of_comparison
from smelt.frontends.jax.open_sizes.size_examples import (
    examples,
    of_numbers,
    remaining_sizes,
    simplified,
)
from smelt.frontends.jax.open_sizes.symbols import symbols_in
from smelt.frontends.jax.open_sizes.traced_cases import (
    Case,
    Choice,
    Leaf,
    dim_in,
    have_one_type,
    leaves_of,
)

LIMIT = 16
"""How often a function is traced for its cases before the trace gives up."""

Traced: TypeAlias = tuple[compat.ClosedJaxpr, Any]
"""A jaxpr, and the output tree of the function."""

Trace: TypeAlias = Callable[[Any], Traced]
"""A function that traces for a pytree of ``ShapeDtypeStruct``."""


Outcome: TypeAlias = Choice | Leaf | SmeltError | None
"""The cases for some sizes, or the error; None if the function itself raises for these sizes."""


def single_case(trace: Trace, structs: Any) -> Case:
    """Return the trace for ``structs`` as a single case."""
    return Leaf(*trace(structs), None)


def suggest_numbers(trace: Trace, structs: Any, error: SmeltError) -> None:
    """Add an example to the fix of ``error``: numbers of the symbols for which ``trace`` succeeds.

    Only an error of the function itself (E113) under symbolic sizes gets this advice.
    """
    dims = [dim for leaf in compat.leaves(structs) for dim in leaf.shape]
    names = sorted({name for dim in dims for name in symbols_in(dim)})
    scope = next((compat.scope_of(dim) for dim in dims if compat.is_symbolic(dim)), None)
    if error.code != "E113" or scope is None:
        return
    for sizes in examples(structs, compat.constraints_in(scope)):
        with suppress(SmeltError):
            trace(of_numbers(structs, sizes))
            numbers = dict(callers_symbol(name, sizes[name]) for name in names)
            assignments = ", ".join(f"{name} = {size}" for name, size in numbers.items())
            advice = f"it works for {assignments}: give {' or '.join(numbers)} as a number"
            error.fix = f"{error.fix}; {advice}" if error.fix else advice
            return


def split_by_sizes(trace: Trace, structs: Any) -> Case:
    """Return the trace for ``structs``, in as many cases as the function's comparisons need.

    Raises the first error if cases do not help, are too many, or have different result types.
    Warns of the cases, and of sizes for which the function raises.
    """
    search = _Search(trace)
    dims = [dim for leaf in compat.leaves(structs) for dim in leaf.shape]
    scope = next((compat.scope_of(dim) for dim in dims if compat.is_symbolic(dim)), None)
    case = search.cases_of(structs, scope, frozenset())
    if isinstance(case, Choice) and search.first_error is not None:
        if not have_one_type(case):
            raise search.first_error
        conditions = in_callers_names(" and ".join(c.text for c in case.conditions))
        warnings.warn(
            f"the model holds {len(leaves_of(case))} cases of sizes, because the function treats"
            f" {conditions} differently{' at '.join(('', *search.first_error.at))}; a constraint"
            " can keep one case",
            stacklevel=5,
        )
    return case


@dataclass
class _Search:
    """One search for cases; it counts traces and keeps the first error."""

    trace: Trace
    count: int = 0
    first_error: SmeltError | None = None
    raised_error: SmeltError | None = None
    """The error that the function raises for all sizes of some case."""

    def cases_of(self, structs: Any, scope: SymbolicScope | None, decided: frozenset[str]) -> Case:
        """Return the cases for ``structs``; ``decided`` holds the comparisons decided so far.

        Raises the error of the trace if no comparison of sizes caused it, if the comparison was
        already decided, and if there would be more than ``LIMIT`` traces.
        """
        self.count += 1
        try:
            return Leaf(*self.trace(structs), scope)
        except SmeltError as error:
            conditions = cases_of_comparison(error)
            comparison = " ".join(sorted(condition.text for condition in conditions))
            too_many = self.count + len(conditions) > LIMIT
            if scope is None or not conditions or comparison in decided or too_many:
                raise
            self.first_error = self.first_error or error
            decided |= {comparison}
            outcomes = [
                self._outcome(condition, structs, scope, decided) for condition in conditions
            ]
            choice = _choice(conditions, outcomes)
            if isinstance(choice, SmeltError):
                raise _with_case_advice(error, conditions, outcomes) from error.__cause__
            if choice is None:  # Every case raises, so the comparison is not the cause.
                cause = self.raised_error or error
                raise cause from cause.__cause__
        return choice

    def _outcome(
        self, condition: SizeCase, structs: Any, scope: SymbolicScope, decided: frozenset[str]
    ) -> Outcome:
        """Return the cases for sizes that satisfy ``condition``, or the error of their trace.

        None if no size satisfies it, or if the function itself raises for these sizes. If the trace
        fails and few sizes remain, each of these sizes becomes a case.
        """
        constraints = simplified([*compat.constraints_in(scope), *condition.constraints])
        if constraints is None:
            return None
        try:
            with assuming_false(condition.assumed) if condition.assumed else nullcontext():
                return self._cases_under(constraints, structs, decided)
        except SmeltError as error:
            if self._raises_for_numbers(error, condition, structs, scope):
                self.raised_error = error
                warnings.warn(
                    in_callers_names(
                        f"the model does not cover sizes where {condition.text}, for which"
                        f" {error.what}: {error.why}"
                    ),
                    stacklevel=6,
                )
                return None
            size_texts = remaining_sizes(condition.text, constraints)
            if not size_texts:
                return error
        equalities = tuple(SizeCase(text, (text,)) for text in size_texts)
        outcomes = [self._outcome(equality, structs, scope, decided) for equality in equalities]
        return _choice(equalities, outcomes)

    def _cases_under(
        self, constraints: Sequence[str], structs: Any, decided: frozenset[str]
    ) -> Case:
        """Return the cases for sizes that satisfy ``constraints``.

        Each set of constraints gets a new scope. JAX caches inner traces by scope, so no other
        trace reuses decisions that are right for these sizes only.
        """
        scope = SymbolicScope(constraints)
        return self.cases_of(jax.tree.map(partial(_in_scope, scope), structs), scope, decided)

    def _raises_for_numbers(
        self, error: SmeltError, condition: SizeCase, structs: Any, scope: SymbolicScope
    ) -> bool:
        """True if the function raises the same error for numbers that satisfy ``condition``.

        Then the function refuses these sizes, as by ``raise ValueError``.
        """
        if error.code != "E113" or cases_of_comparison(error):
            return False
        numbers = examples(structs, [condition.text, *compat.constraints_in(scope)])
        return bool(numbers) and all(self._raises(error, of_numbers(structs, n)) for n in numbers)

    def _raises(self, error: SmeltError, structs: Any) -> bool:
        """True if the trace for ``structs`` raises an error like ``error``."""
        try:
            self.trace(structs)
        except SmeltError as new_error:
            return (new_error.code, new_error.what) == (error.code, error.what)
        return False


def _choice(conditions: Sequence[SizeCase], outcomes: Sequence[Outcome]) -> Outcome:
    """Return the choice among the cases in ``outcomes``, or the first error among them.

    A single case is returned itself; None if there is no case.
    """
    failed = [outcome for outcome in outcomes if isinstance(outcome, SmeltError)]
    if failed:
        return failed[0]
    pairs = [
        (condition, outcome)
        for condition, outcome in zip(conditions, outcomes, strict=True)
        if isinstance(outcome, Choice | Leaf)
    ]
    if len(pairs) < 2:
        return pairs[0][1] if pairs else None
    return Choice(tuple(condition for condition, _ in pairs), tuple(case for _, case in pairs))


_SINGLE_VALUE = re.compile(r"\w+ (<= 1|== \d+)")
"""A constraint that leaves a symbol a single value."""


def _with_case_advice(
    error: SmeltError, conditions: Sequence[SizeCase], outcomes: Sequence[Outcome]
) -> SmeltError:
    """Return ``error`` with a new fix: constraints under which the trace succeeds.

    Conditions that leave a single size are no advice. Only E112 gets the new fix.
    """
    working = [
        condition
        for condition, outcome in zip(conditions, outcomes, strict=True)
        if isinstance(outcome, Choice | Leaf) and not _SINGLE_VALUE.fullmatch(condition.text)
    ]
    helpful = [f"'{as_python(text)}'" for case in working for text in case.constraints[:1]]
    if error.code == "E112" and len(helpful) < len(conditions):
        constraint = f"add a constraint, {' or '.join(helpful)}; or " if helpful else ""
        error.fix = f"{constraint}give the dim as a number"
    return error


def _in_scope(scope: SymbolicScope, struct: Any) -> Any:
    """Return ``struct`` with its dims in ``scope``."""
    shape = tuple(dim_in(scope, str(dim)) for dim in struct.shape)
    return compat.struct(shape, struct.dtype, struct.weak_type)
