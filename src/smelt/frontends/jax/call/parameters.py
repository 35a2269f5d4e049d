"""Arrays of a function that become inputs of its jaxpr.

Arrays whose names match a pattern stay inputs of the graph. Abstract arrays become weights without
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from smelt.errors import UsageError, listed
from smelt.frontends.jax import compat
from smelt.frontends.jax.call.state import Copy, State, Substitution, is_abstract
from smelt.frontends.jax.interpreter import live_equations

SHOWN = 20
"""How many names an error message lists."""


@dataclass(frozen=True)
class Parameters:
    """The arrays of ``state``, by name, that are abstract or whose names match ``patterns``."""

    state: State
    patterns: tuple[str, ...]
    arrays: Mapping[str, Any]

    def function(
        self, fn: Callable[..., Any], values: Sequence[Any]
    ) -> tuple[Callable[..., Any], Sequence[Copy]]:
        """Return ``fn`` with ``values`` in place of ``arrays``, and copies of its nnx modules.

        Modules are copied in any case, because a trace must not write to those of its caller.
        """
        if not values and not self.state.has_modules:
            return fn, ()
        pairs = zip(self.arrays.values(), values, strict=True)
        substitution = Substitution({id(array): value for array, value in pairs})
        return self.state.rebuild(substitution), substitution.copies

    def weights(self) -> list[str]:
        """Return the names of the arrays that no pattern makes inputs: weights without numbers."""
        return [name for name in self.arrays if not _matches_any(name, self.patterns)]

    def read(self, cases: Sequence[compat.ClosedJaxpr]) -> list[str]:
        """Return the names of the arrays that some of ``cases`` reads; they are its last inputs.

        Raises UsageError E110 for a pattern whose arrays are never read, and for an array that the
        function also reaches by another way: part of its uses would be a constant.
        """
        used = {name for closed in cases for name in self._names_of_used(closed.jaxpr)}
        names_read = [name for name in self.arrays if name in used]
        for closed in cases:
            self._check(closed, names_read)
        return names_read

    def _names_of_used(self, jaxpr: compat.Jaxpr) -> list[str]:
        """Return the names of the arrays that ``jaxpr`` reads in an equation, or returns."""
        read: list[compat.Atom] = list(jaxpr.outvars)
        for equation in live_equations(jaxpr):
            read += equation.invars
        used = {atom for atom in read if not isinstance(atom, compat.Literal)}
        count = len(jaxpr.invars) - len(self.arrays)  # The arrays are the last inputs.
        pairs = zip(self.arrays, jaxpr.invars[count:], strict=True)
        return [name for name, variable in pairs if variable in used]

    def with_inputs(self, closed: compat.ClosedJaxpr, read: Sequence[str]) -> compat.ClosedJaxpr:
        """Return ``closed`` without the inputs of arrays that are not in ``read``."""
        inputs = closed.jaxpr.invars
        count = len(inputs) - len(self.arrays)
        variables = dict(zip(self.arrays, inputs[count:], strict=True))
        remaining_inputs = (*inputs[:count], *(variables[name] for name in read))
        return compat.with_inputs(closed, remaining_inputs)

    def _check(self, closed: compat.ClosedJaxpr, names_read: Sequence[str]) -> None:
        """Raise UsageError E110 for an unread pattern, or an array that is also a constant."""
        for pattern in self.patterns:
            if not any(fnmatchcase(name, pattern) for name in names_read):
                raise UsageError(
                    "E110",
                    f"the function uses no parameter that matches {pattern!r}",
                    why="input_params names arrays that the function holds and reads",
                    fix="remove the pattern, or correct it",
                )
        fixed = {compat.identity(constant) for constant in _constants(closed)}
        for name, array in self.arrays.items():
            if compat.identity(array) in fixed:
                raise UsageError(
                    "E110",
                    f"the array {name!r} cannot become an input",
                    why="the function also holds it in a place that smelt cannot replace",
                    fix="pass it to the function as an argument",
                )


def choose(state: State, patterns: Sequence[str] | str) -> Parameters:
    """Return the abstract arrays of ``state`` and those whose names match a shell-style pattern.

    Raises UsageError E110 for a pattern that matches no array.
    """
    pattern_list = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    for pattern in pattern_list:
        if not any(fnmatchcase(name, pattern) for name in state.arrays):
            raise UsageError(
                "E110",
                f"no array of the function has a name that matches {pattern!r}",
                why="arrays are found in modules, closures, partials and global variables",
                fix=_fix_with_names(list(state.arrays)),
            )
    names = [n for n, a in state.arrays.items() if is_abstract(a) or _matches_any(n, pattern_list)]
    return Parameters(state, pattern_list, {name: state.arrays[name] for name in names})


def _matches_any(name: str, patterns: Sequence[str]) -> bool:
    """True if ``name`` matches one of ``patterns``."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _fix_with_names(names: list[str]) -> str:
    """Return the fix for a pattern that matches no array: the names of the arrays."""
    if not names:
        return "pass arrays to the function as arguments"
    return f"its arrays are {listed(names, SHOWN)}"


def _constants(closed: compat.ClosedJaxpr) -> Iterator[object]:
    """Yield every constant and literal of ``closed`` and of the jaxprs inside it."""
    pending: list[Any] = [closed]
    seen: set[int] = set()
    while pending:
        body = pending.pop()
        if id(body) in seen:
            continue
        seen.add(id(body))
        if isinstance(body, compat.ClosedJaxpr):
            yield from body.consts
            body = body.jaxpr
        for equation in body.eqns:
            yield from (a.val for a in equation.invars if isinstance(a, compat.Literal))
            pending.extend(compat.inner_jaxprs(equation))
