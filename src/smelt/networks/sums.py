"""Several linear combinations of contractions as one program, which shares their products."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial, reduce
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir.build import Builder
from smelt.ir.complex_pairs import mark_pairs
from smelt.ir.same_shape import Dim, same_dim
from smelt.ir.shapes.inference import ShapeInference
from smelt.networks.arguments import items_of, numbers_of
from smelt.networks.compile import compiled_model, model_of
from smelt.networks.differentiable import Differentiable
from smelt.networks.equations import dims_of, equation_of, type_over
from smelt.networks.expansion import Expansion, Summand
from smelt.networks.shared_products import FIRST_LABEL, SharedProducts
from smelt.operators.contraction import Equation
from smelt.operators.contraction_paths import Optimize, find_path, with_default_finder
from smelt.operators.semiring import semiring_of
from smelt.targets.base import Artifact, Target
from smelt.targets.registry import find_target

Term: TypeAlias = tuple[Any, ...]
"""An equation, the numbers of its operands, and a factor, 1 if left out."""


@dataclass(frozen=True)
class Sharing:
    """The costs of a program of several contractions, counted as opt_einsum does.

    ``flops_alone`` are those of the same contractions, each by its best path and for itself.
    """

    products: int
    flops: int
    flops_alone: int


@dataclass(eq=False)
class Contractions(Differentiable):
    """An artifact of ``smelt.compile_einsums``; call it with one array per operand."""

    sharing: Sharing = field(kw_only=True)
    sums: Expansion = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, artifact: Artifact, sharing: Sharing, sums: Expansion) -> Contractions:
        """Return ``artifact`` as the contractions that share products."""
        given = {each.name: getattr(artifact, each.name) for each in fields(artifact)}
        return cls(**given, sharing=sharing, sums=sums)

    @cached_property
    def expansion(self) -> Expansion:
        """The results as sums of the contractions that were given."""
        return replace(self.sums, options=self.options_of_einsum("auto", None))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as ``Artifact`` does, with the costs and the sums."""
        return _restored, (super().__reduce__(), self.sharing, self.sums)


def _restored(
    reduced: tuple[Callable[..., Artifact], tuple[Any, ...]], sharing: Sharing, sums: Expansion
) -> Contractions:
    """Return the contractions that were pickled."""
    make, arguments = reduced
    return Contractions.of(make(*arguments), sharing, sums)


def compile_einsums(
    results: Sequence[Term | Sequence[Term]],
    shapes: Sequence[Any],
    dtype: Any = np.float32,
    *,
    target: str | Target = "host",
    optimize: Optimize = "auto",
    **options: Any,
) -> Contractions:
    """Compile several sums of contractions of the same operands as one program.

    ``shapes`` has the shape of each operand, as in ``smelt.compile_einsum``. A result is a term or
    a list of terms that are added; a term is ``(equation, numbers of operands)`` or ``(equation,
    numbers, factor)``::

        commutator = [("ab,bc->ac", (0, 1)), ("ab,bc->ac", (1, 0), -1)]
        smelt.compile_einsums([commutator, ("aa->", (0,))], [(3, 3)] * 2)

    The artifact takes one array per operand and returns one array per result. A product that
    occurs in several terms is computed once. ``optimize`` finds the path of each term.
    ``artifact.sharing`` has the costs, with and without sharing.

    Raises UsageError E699 for a result that is no list of terms, and the errors of
    ``smelt.compile_einsum``.
    """
    given = type_over(dtype, semiring_of("sum_product"))
    dims = [dims_of(shape) for shape in items_of("shapes", shapes, "shape or array")]
    sums = [_terms(result) for result in items_of("results", results, "term or list of terms")]
    if not sums:
        raise _malformed(results, "there is no result")
    read = [[_Read.of(term, dims, given) for term in terms] for terms in sums]
    for terms in read:
        _check_shapes(terms)
    shared, roots, alone = _planned(read, len(dims), optimize)
    model, operands = model_of(dims, given, {})
    _build(model, operands, shared, roots, read)
    artifact = compiled_model(model, find_target(target), options, is_whole=True)
    summands = tuple(
        tuple(Summand(str(each.equation), each.numbers, each.factor) for each in terms)
        for terms in read
    )
    sharing = Sharing(len(shared.products), shared.flops, alone)
    return Contractions.of(artifact, sharing, Expansion(summands, dims, given))


@dataclass(frozen=True)
class _Read:
    """A checked term: its equation, numbers of operands, size of each label, and factor.

    ``factor`` is an array of rank 0 and the program's type.
    """

    equation: Equation
    numbers: tuple[int, ...]
    sizes: Mapping[str, Dim]
    factor: np.ndarray

    @classmethod
    def of(cls, term: Term, dims: Sequence[Sequence[Dim]], dtype: np.dtype) -> _Read:
        """Return ``term``, checked for operands of the shapes ``dims``."""
        text, numbers = term[0], tuple(numbers_of("numbers", term[1]))
        if not numbers or not all(0 <= number < len(dims) for number in numbers):
            raise _malformed(term, f"there are {len(dims)} operands, numbered from 0 on")
        equation, sizes = equation_of(text, [dims[number] for number in numbers])
        factor = np.asarray(term[2] if len(term) > 2 else 1)
        if factor.ndim or not np.can_cast(factor.dtype, dtype, "same_kind"):
            raise _malformed(term, f"its factor {term[2]!r} is no number of the type {dtype}")
        return cls(equation, numbers, sizes, factor.astype(dtype))

    @property
    def shape(self) -> list[Dim]:
        """The sizes of the dims of the result."""
        return [self.sizes[label] for label in self.equation.out]


def _terms(result: Any) -> list[Term]:
    """Return the terms of a result, which may be one term; raises UsageError E699."""
    items = items_of("results", result, "term or list of terms")
    if items and isinstance(items[0], str):
        items = [tuple(items)]
    for term in items:
        if not isinstance(term, Sequence) or isinstance(term, str) or len(term) not in (2, 3):
            raise _malformed(term, "a term has an equation, numbers of operands, and a factor")
    if not items:
        raise _malformed(result, "a sum has one term or more")
    return items


def _malformed(value: Any, why: str) -> UsageError:
    """Return E699: a result is no sum of contractions."""
    text = repr(value)
    return UsageError(
        "E699",
        f"{text if len(text) <= 60 else text[:57] + '...'} is no sum of contractions",
        why=why,
        fix="give a list of terms, such as [('ab,bc->ac', (0, 1)), ('ab,bc->ac', (1, 0), -1)]",
    )


def _check_shapes(terms: Sequence[_Read]) -> None:
    """Raise UsageError E656 unless all terms of a sum have one shape."""
    first = terms[0].shape
    for term in terms[1:]:
        if len(term.shape) != len(first) or not all(map(same_dim, term.shape, first)):
            shapes = " and ".join(str(list(map(str, each))) for each in (first, term.shape))
            raise UsageError(
                "E656",
                "the terms of a sum differ in shape",
                why=f"their shapes are {shapes}",
                fix="give terms whose results have the same dims",
            )


def _planned(
    read: Sequence[Sequence[_Read]], operands: int, optimize: Optimize
) -> tuple[SharedProducts, list[list[int]], int]:
    """Return the products of all terms, the value of each term by number, and the flops without
    sharing.

    With ``auto``, paths of ``greedy`` are tried, too: they often share more products.
    """
    plans: list[tuple[SharedProducts, list[list[int]]]] = []
    for finder in (optimize, "greedy") if with_default_finder(optimize) == "auto" else (optimize,):
        shared = SharedProducts(operands)
        roots = [
            [
                shared.add(
                    term.equation,
                    term.numbers,
                    find_path(term.equation, term.sizes, finder),
                    term.sizes,
                )
                for term in terms
            ]
            for terms in read
        ]
        plans.append((shared, roots))
    best, roots = min(plans, key=lambda plan: plan[0].flops)
    return best, roots, plans[0][0].flops_alone


def _build(
    model: ir.Model,
    operands: Sequence[ir.Value],
    shared: SharedProducts,
    roots: Sequence[Sequence[int]],
    read: Sequence[Sequence[_Read]],
) -> None:
    """Add the nodes of the products to ``model``, and one output per result.

    ``roots`` has, for each result, the numbers of the values of its terms, which are added.
    """
    dtype = read[0][0].factor.dtype
    builder = Builder(model, model.graph, ShapeInference(model))
    is_complex = dtype.kind == "c"

    def product(equation: str, *values: ir.Value) -> ir.Value:
        """Build a product."""
        pairs = 1 if is_complex else None
        return builder.op("Einsum", *values, domain="smelt", equation=equation, pairs=pairs)

    values = list(operands)
    for each in shared.products:
        values.append(product(each.equation, *(values[number] for number in each.operands)))
    for number, (places, terms) in enumerate(zip(roots, read, strict=True)):
        scaled: list[ir.Value] = []
        for place, term in zip(places, terms, strict=True):
            labels = "".join(map(chr, range(FIRST_LABEL, FIRST_LABEL + len(term.shape))))
            value = values[place]
            if term.factor != 1:
                factor = term.factor
                pair = np.stack([factor.real, factor.imag]) if is_complex else factor
                constant = builder.constant(pair)
                value = product(f"{labels},->{labels}", value, constant)
            scaled.append(value)
        result = builder.op("Identity", reduce(partial(builder.op, "Add"), scaled))
        result.name = f"result_{number}"
        if is_complex:
            mark_pairs(result, str(dtype))
        model.graph.outputs.append(result)
