"""Trace a jaxpr again with arrays of one kind represented by other arrays.

ONNX has neither PRNG keys nor operators on complex numbers. A ``Representation`` says which arrays
represent a value and how an equation acts on them. A ``_Conversion`` walks the jaxpr, its calls and
its loops.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from smelt.errors import ErrorList, Unsupported
from smelt.frontends.jax import compat, frames
from smelt.frontends.jax.functions import marks
from smelt.frontends.jax.interpreter import (
    bodies,
    called_jaxpr,
    interpret,
    jaxpr_and_constants,
    live_equations,
)

Value: TypeAlias = Any
"""An array, or the representation of one."""

Run: TypeAlias = Callable[[compat.ClosedJaxpr, Sequence[Value]], list[Value]]
"""A function that returns the results of a jaxpr for represented operands."""

COUNTED: Mapping[str, Mapping[str, str]] = {
    "while": {"cond_nconsts": "", "body_nconsts": "cond_nconsts"},
    "scan": {"num_consts": "", "num_carry": "num_consts"},
    "cond": {},
}
"""Control flow primitives, and their parameters that count operands.

Each counting parameter maps to the parameter that counts the operands before those, "" if none.
"""


Conversions: TypeAlias = dict[tuple["Representation", Hashable], compat.ClosedJaxpr]
"""Converted jaxprs, by the representation and by JAX's trace context."""

_CONVERTED: WeakKeyDictionary[compat.ClosedJaxpr, Conversions] = WeakKeyDictionary()


@dataclass(frozen=True)
class Representation:
    """How arrays of one kind are represented.

    - ``concerns(aval)``: True for arrays of that kind.
    - ``structs(aval)``: the types of the arrays that represent one array.
    - ``parts(value)``: the arrays that represent ``value``; ``whole(arrays)`` is the inverse.
    - ``split(array)``: the representation of a concrete array.
    - ``apply(equation, values, run)``: the results of an equation with operands or results of that
      kind.
    - ``refusal(equation)``: the error if ``apply`` has no rule for the equation, else None.
    - ``handles(equation)``: True if ``apply`` computes an equation without arrays of that kind.
    """

    concerns: Callable[[compat.Aval], bool]
    structs: Callable[[compat.Aval], Sequence[Any]]
    parts: Callable[[Value], Sequence[Any]]
    whole: Callable[[Sequence[Any]], Value]
    split: Callable[[Any], Value]
    apply: Callable[[compat.Equation, list[Value], Run], Sequence[Value]]
    refusal: Callable[[compat.Equation], Unsupported | None]
    handles: Callable[[compat.Equation], bool] = lambda equation: False


def convert(closed: compat.ClosedJaxpr, kind: Representation) -> compat.ClosedJaxpr:
    """Return ``closed`` with arrays of ``kind`` represented, inside and as inputs or outputs.

    Raises an ErrorList of the refusals of ``kind``, one for each primitive.
    """
    conversion = _Conversion(kind)
    if not conversion.contains_kind(closed.jaxpr):
        return closed
    refused: dict[str, Unsupported] = {}
    conversion.collect(closed.jaxpr, refused)
    if refused:
        raise ErrorList(refused[name] for name in sorted(refused))
    return conversion.closed(closed)


class _Conversion:
    """One call of ``convert``; it converts each jaxpr once, however often it is called.

    Each dictionary keeps its jaxprs alive, so that no other jaxpr gets the same id.
    """

    def __init__(self, kind: Representation) -> None:
        self._kind = kind
        self._contains_kind: dict[int, tuple[object, bool]] = {}
        self._converted: dict[int, tuple[object, compat.ClosedJaxpr]] = {}
        self._over_meshes = 0  # how many bodies of shard_map the walk is inside of

    # -- which jaxprs contain arrays of the kind ---------------------------------------------

    def contains_kind(self, jaxpr: compat.Jaxpr) -> bool:
        """True if ``jaxpr`` contains an array of the kind."""
        cached = self._contains_kind.get(id(jaxpr))
        if cached is None:
            variables = (*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars)
            contains_kind = any(map(self._is_of_kind, variables))
            contains_kind = contains_kind or any(
                self._uses_kind(e) or self._bodies_use_kind(e) for e in jaxpr.eqns
            )
            cached = self._contains_kind[id(jaxpr)] = jaxpr, contains_kind
        return cached[1]

    def _is_of_kind(self, atom: compat.Atom) -> bool:
        """True if ``atom`` is an array of the kind."""
        return self._kind.concerns(atom.aval)

    def _uses_kind(self, equation: compat.Equation) -> bool:
        """True if the equation has operands or results of the kind, or ``apply`` handles it."""
        operands_and_results = (*equation.invars, *equation.outvars)
        return any(map(self._is_of_kind, operands_and_results)) or self._kind.handles(equation)

    def _bodies_use_kind(self, equation: compat.Equation) -> bool:
        """True if a jaxpr inside of the equation contains an array of the kind."""
        return any(map(self.contains_kind, bodies(equation)))

    def collect(self, jaxpr: compat.Jaxpr, refused: dict[str, Unsupported]) -> None:
        """Record the refusal of the first use of each primitive in ``jaxpr``."""
        for equation in live_equations(jaxpr):
            name = equation.primitive.name
            if name in COUNTED or called_jaxpr(equation) is not None:
                for body in bodies(equation):
                    if self.contains_kind(body):
                        self.collect(body, refused)
            elif name not in refused and (
                self._uses_kind(equation) or self._bodies_use_kind(equation)
            ):
                why = self._kind.refusal(equation)
                if why is not None:
                    refused[name] = why

    # -- the walk ----------------------------------------------------------------------------

    def closed(self, closed: compat.ClosedJaxpr) -> compat.ClosedJaxpr:
        """Return ``closed`` converted, or itself if it has no array that needs a representation."""
        if not self.contains_kind(closed.jaxpr):
            return closed
        cached = self._converted.get(id(closed))
        if cached is None:
            cached = self._converted[id(closed)] = closed, self._cached(closed)
        return cached[1]

    def _cached(self, closed: compat.ClosedJaxpr) -> compat.ClosedJaxpr:
        """Return ``closed`` converted, from a cache that all traces share.

        Random draws use the same few inner jaxprs in all. An entry lives as long as the jaxpr.
        """
        if closed.consts or self._over_meshes:
            return self._traced(closed)
        conversions = _CONVERTED.setdefault(closed, {})
        key = self._kind, compat.trace_context()
        if key not in conversions:
            conversions[key] = self._traced(closed)
        return conversions[key]

    def _traced(self, closed: compat.ClosedJaxpr) -> compat.ClosedJaxpr:
        """Trace ``closed`` again with represented inputs and constants."""
        jaxpr, count = closed.jaxpr, len(closed.jaxpr.constvars)
        inputs = [*jaxpr.constvars, *jaxpr.invars]

        def run(*arrays: Any) -> list[Any]:
            """Return the arrays that represent the results, for those that represent the inputs."""
            values = self._grouped(arrays, inputs)
            return self._arrays(self._run(jaxpr, values[:count], values[count:]))

        structs = tuple(struct for v in inputs for struct in self._kind.structs(v.aval))
        traced, _ = compat.make_jaxpr(run, structs)
        constants = self._arrays(self._kind.split(constant) for constant in closed.consts)
        return compat.with_constants(traced, constants, jaxpr)

    def _run(
        self, jaxpr: compat.Jaxpr, constants: Sequence[Value], operands: Sequence[Value]
    ) -> list[Value]:
        """Return the represented results of ``jaxpr``."""
        return interpret(jaxpr, constants, operands, self._literal, self._step)

    def _call_results(
        self, body: compat.ClosedJaxpr | compat.Jaxpr, operands: Sequence[Value]
    ) -> list[Value]:
        """Return the represented results of a jaxpr with its own constants."""
        jaxpr, constants = jaxpr_and_constants(body)
        return self._run(jaxpr, list(map(self._kind.split, constants)), operands)

    def _literal(self, literal: compat.Literal) -> Value:
        """Return the representation of a literal."""
        value = literal.val
        if self._is_of_kind(literal):
            aval: compat.Aval = literal.aval
            value = np.asarray(value, aval.dtype)
        return self._kind.split(value)

    def _step(self, equation: compat.Equation, values: list[Value]) -> Sequence[Value]:
        """Return the represented results of one equation.

        An equation without represented arrays is copied or bound again. A loop and a jitted call
        get converted jaxprs; other calls are inlined; ``apply`` computes all other equations.
        """
        uses_kind = self._bodies_use_kind(equation) or self._uses_kind(equation)
        copied = None if uses_kind or self._over_meshes else frames.copy_equation(equation, values)
        if copied is not None:
            return copied
        with frames.traced_as(equation):
            if not uses_kind:
                return compat.rebind(equation, values, equation.params)
            if equation.primitive.name in COUNTED:
                return self._rebound(equation, values, self._loop_params(equation, values))
            body = called_jaxpr(equation)
            if body is None:
                return self._kind.apply(equation, values, self._call_results)
            jitted = equation.primitive.name in compat.JITTED and not self._over_meshes
            if jitted and isinstance(body, compat.ClosedJaxpr):
                return self._rebound(equation, values, self._call_params(equation, body))
            if equation.primitive.name == "shard_map":
                return self._over_mesh(equation, body, values)
            return self._call_results(body, values)

    def _rebound(
        self, equation: compat.Equation, values: list[Value], params: dict[str, Any]
    ) -> list[Value]:
        """Bind the primitive on the parts of ``values``; return its represented results."""
        results = compat.rebind(equation, self._arrays(values), params)
        return self._grouped(results, equation.outvars)

    def _loop_params(self, equation: compat.Equation, values: list[Value]) -> dict[str, Any]:
        """Return the parameters of a loop with converted bodies and new operand counts."""
        params = {name: self._replaced(value) for name, value in equation.params.items()}
        for name, before in COUNTED[equation.primitive.name].items():
            first = int(equation.params[before]) if before else 0
            params[name] = len(self._arrays(values[first : first + int(equation.params[name])]))
        return params

    def _replaced(self, parameter: Any) -> Any:
        """Return a parameter with each jaxpr in it converted."""
        if isinstance(parameter, compat.ClosedJaxpr):
            return self.closed(parameter)
        if isinstance(parameter, tuple):
            return tuple(map(self._replaced, parameter))
        return parameter

    def _call_params(self, equation: compat.Equation, body: compat.ClosedJaxpr) -> dict[str, Any]:
        """Return the parameters of a jitted call with a converted body."""
        operands, results = self._widths(equation.invars), self._widths(equation.outvars)
        params = compat.jit_params(equation, self.closed(body), operands, results)
        return {**params, "name": marks.with_more_operands(params["name"], operands)}

    def _over_mesh(
        self,
        equation: compat.Equation,
        body: compat.ClosedJaxpr | compat.Jaxpr,
        values: list[Value],
    ) -> list[Value]:
        """Trace the body of a ``shard_map`` again under the axis names of its mesh.

        Calls inside are inlined, because a separately traced jaxpr does not know over which axes
        its operands differ.
        """

        def run(*arrays: Any) -> tuple[Any, ...]:
            """Return the parts of the body's results, with calls inlined."""
            self._over_meshes += 1
            try:
                results = self._call_results(body, self._grouped(arrays, equation.invars))
            finally:
                self._over_meshes -= 1
            return tuple(self._arrays(results))

        widths = self._widths(equation.invars), self._widths(equation.outvars)
        results = compat.over_mesh(equation, run, *widths)(*self._arrays(values))
        return self._grouped(results, equation.outvars)

    # -- values and the arrays that represent them -------------------------------------------

    def _widths(self, atoms: Iterable[compat.Atom]) -> list[int]:
        """Return how many arrays represent each atom."""
        return [len(self._kind.structs(atom.aval)) for atom in atoms]

    def _arrays(self, values: Iterable[Value]) -> list[Any]:
        """Return the arrays of all values in one list."""
        return [array for value in values for array in self._kind.parts(value)]

    def _grouped(self, arrays: Iterable[Any], atoms: Iterable[compat.Atom]) -> list[Value]:
        """Return one value per atom, each made of the next arrays: the inverse of ``_arrays``."""
        source = iter(arrays)
        values = []
        for atom, width in zip(atoms, self._widths(atoms), strict=True):
            parts = [next(source) for _ in range(width)]
            values.append(self._kind.whole(parts) if self._is_of_kind(atom) else parts[0])
        return values
