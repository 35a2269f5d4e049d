"""Recognize functions that JAX expands when it exports them, as series and polynomials.

StableHLO has no operators such as ``erfc`` and ``lgamma``, so an exported program holds their
arithmetic, 60 to 350 operators each. An expansion is recognized if it has the operators and the
constants that this jaxlib writes, bit by bit. The function replaces its expansion, so an exported
function gives the same model as its source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jax import lax

from smelt.frontends.stablehlo import jax_names
from smelt.frontends.stablehlo.operation import Operation
from smelt.frontends.stablehlo.patterns import exported_pattern
from smelt.frontends.stablehlo.producers import Functions

# Constants of expansions, each in f32 and in f64, as MLIR prints them.
_ZETA = ("-1.39544646E-19", "-1.3954464685812522E-19")  # a coefficient of the Hurwitz zeta series
_LANCZOS = ("1.50563267E-7", "1.5056327351493116E-7")  # of the Lanczos formula of log-gamma
_LARGEST = ("3.40282347E+38", "1.7976931348623157E+308")  # the largest finite number


@dataclass(frozen=True)
class Decomposition:
    """A JAX function of ``count`` operands, whose expansion ends with the operator ``last``.

    ``marks`` are constants that each expansion contains, in f32 and f64 as MLIR prints them. smelt
    looks for the expansion only in modules with these constants, because a comparison is slow.
    """

    function: Callable[..., Any]
    count: int
    marks: tuple[tuple[str, str], ...]
    last: str = "stablehlo.select"


DECOMPOSITIONS = (
    Decomposition(lax.igamma, 2, (_LANCZOS, _LARGEST)),
    Decomposition(lax.igammac, 2, (_LANCZOS, _LARGEST)),
    Decomposition(lax.random_gamma_grad, 2, (_LANCZOS, _LARGEST)),
    Decomposition(jax_names.igamma_grad_a, 2, (_LANCZOS, _LARGEST)),
    Decomposition(lax.betainc, 3, (_LANCZOS, ("5.96046448E-8", "1.1102230246251565E-16"))),
    Decomposition(lax.polygamma, 2, (_LANCZOS, _ZETA)),
    Decomposition(lax.zeta, 2, (_ZETA,)),
    Decomposition(lax.lgamma, 1, (_LANCZOS,)),
    Decomposition(lax.digamma, 1, (_LANCZOS,)),
    Decomposition(lax.erfc, 1, (("7.85386146E-5", "2.4619698147353052E-10"),)),
    Decomposition(lax.erf_inv, 1, (("-2.00214257E-4", "-5.4154120542946279E-11"),)),
    Decomposition(lax.bessel_i0e, 1, (("-2.67079372E-7", "-1.7941785315068062E-12"),)),
    Decomposition(
        lax.bessel_i1e, 1, (("-4.44505908E-8", "-2.1015418427726643E-14"),), "stablehlo.multiply"
    ),
    Decomposition(lax.atan, 1, (), "stablehlo.atan2"),
)
"""All recognized functions; the first match counts.

An expansion may contain others: that of ``igamma`` contains ``lgamma``. The function with the
larger expansion stands first.
"""

_COMPUTED_IN: Mapping[str, str] = {"f32": "f32", "f64": "f64", "f16": "f32", "bf16": "f32"}
"""For each element type, the type in which JAX computes its expansions."""


class Decomposed:
    """Finds expansions in one module; ``functions`` are the module's functions by name."""

    def __init__(self, module: Any, functions: Functions) -> None:
        """Prepare the search in ``module``: collect the texts of its constants, for the marks."""
        self._functions = functions
        self._constants = jax_names.splat_texts(module)

    def find(self, view: Any) -> tuple[Callable[..., Any], list[Any]] | None:
        """Return the function whose expansion ends with the operation ``view``, and its operands.

        None if there is no such function.
        """
        if len(view.results) != 1 or view.name not in _LAST:
            return None
        op = Operation(view)
        element = op.element
        for candidate in self._possible_decompositions(view.name, element):
            pattern = exported_pattern(
                candidate.function, op.dtype.name, (len(op.shape),) * candidate.count
            )
            operands = pattern.match(list(view.results), self._functions)
            if operands:
                return candidate.function, operands
        return None

    def _possible_decompositions(self, name: str, element: str) -> Iterator[Decomposition]:
        """Yield the decompositions whose expansion may end with operator ``name`` on ``element``.

        JAX computes 16-bit floats in f32, so their expansion ends with a convert (except that of
        atan). Decompositions with a constant that the module lacks are skipped.
        """
        computed_type = _COMPUTED_IN.get(element)
        if computed_type is None:
            return
        narrow = computed_type != element
        for candidate in DECOMPOSITIONS:
            is_converted = narrow and candidate.last != "stablehlo.atan2"
            last = "stablehlo.convert" if is_converted else candidate.last
            texts = [
                in_double if computed_type == "f64" else in_single
                for in_single, in_double in candidate.marks
            ]
            marks = [f"{text} : {computed_type}" for text in texts]
            if last == name and self._constants.issuperset(marks):
                yield candidate


_LAST = frozenset({"stablehlo.convert", *(function.last for function in DECOMPOSITIONS)})
"""The operators with which an expansion can end."""
