"""Equations of contractions, and the sizes of their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smelt.ir.same_shape import Dim, same_dim

Labels = tuple[str, ...]

UNKNOWN_SIZE = 64
"""Assumed size of a symbolic dim when a path is chosen."""


@dataclass(frozen=True)
class Equation:
    """The labels of each operand and of the result; dims under an ellipsis count from the back."""

    terms: tuple[Labels, ...]
    out: Labels

    def __str__(self) -> str:
        """Return the equation as text, with a separate character for each dim under an ellipsis.

        Those characters come from the end of Unicode's private range.
        """
        labels = dict.fromkeys(label for term in self.terms for label in term)
        unused = (c for c in map(chr, range(0xF8FE, 0xE000, -1)) if c not in labels)
        letters = {label: label if len(label) == 1 else next(unused) for label in labels}
        *terms, out = (
            "".join(letters[label] for label in term) for term in (*self.terms, self.out)
        )
        return f"{','.join(terms)}->{out}"


def parse(equation: str, ranks: Sequence[int]) -> Equation:
    """Return ``equation`` for operands of ``ranks``.

    Labels are any characters except ``,->.`` and blanks. Without an arrow, the result has the dims
    under ellipses, then the labels that occur once, sorted. Raises ValueError with a sentence if
    the equation does not fit.
    """
    text = "".join(equation.split())
    operands_text, arrow, result_text = text.partition("->")
    terms = operands_text.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"equation {equation!r} does not fit {len(ranks)} operands")
    for term in (*terms, result_text):
        if set(term.replace("...", "")) & set(".->,"):
            raise ValueError(f"{term!r} is no term of an equation")
    ellipsis_ranks = [
        rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)
    ]
    for term, count, rank in zip(terms, ellipsis_ranks, ranks, strict=True):
        if count < 0 or (count and "..." not in term):
            raise ValueError(f"term {term!r} does not fit an operand of {rank} dims")
    largest_ellipsis = max(
        (
            hidden_dims
            for term, hidden_dims in zip(terms, ellipsis_ranks, strict=True)
            if "..." in term
        ),
        default=0,
    )
    labels = [_expand(term, count) for term, count in zip(terms, ellipsis_ranks, strict=True)]
    if arrow:
        out = _expand(result_text, largest_ellipsis)
    else:
        letters = [label for term in labels for label in term if len(label) == 1]
        labels_once = sorted(label for label in set(letters) if letters.count(label) == 1)
        out = (*_expand("...", largest_ellipsis), *labels_once)
    if len(set(out)) < len(out):
        raise ValueError(f"the result of {equation!r} repeats a label")
    all_labels = {label for term in labels for label in term}
    for label in out:
        if label not in all_labels:
            raise ValueError(f"no operand of {equation!r} has the dim {label!r} of the result")
    return Equation(tuple(labels), out)


def _expand(term: str, hidden: int) -> Labels:
    """Return the labels of ``term``, with ``hidden`` labels in place of its ellipsis."""
    before, dots, after = term.partition("...")
    if "..." in after:
        raise ValueError(f"{term!r} has two ellipses")
    middle = [f"...{i}" for i in range(hidden, 0, -1)] if dots else []
    return (*before, *middle, *after)


def counts_of(sizes: Mapping[str, Dim]) -> dict[str, int]:
    """Return the size of each label as a number; ``UNKNOWN_SIZE`` for a symbolic one."""
    return {label: size if isinstance(size, int) else UNKNOWN_SIZE for label, size in sizes.items()}


def sizes_of(terms: Sequence[Labels], shapes: Sequence[Sequence[Dim]]) -> dict[str, Dim]:
    """Return the size of each label; a size of 1 broadcasts. Raises ValueError if others differ."""
    sizes: dict[str, Dim] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for label, dim in zip(term, shape, strict=True):
            earlier = sizes.setdefault(label, dim)
            if earlier is dim:
                continue
            if earlier == 1:
                sizes[label] = dim
            elif dim != 1 and not same_dim(earlier, dim):
                raise ValueError(
                    f"sizes {earlier} and {dim} of {label!r} are not known to be equal"
                )
    return sizes


def with_labels_for_ones(equation: Equation, shapes: Sequence[Sequence[Dim]]) -> Equation:
    """Return ``equation`` with new labels for dims of size 1 that broadcast against larger dims.

    The sum over such a dim is its only element. Afterwards equal labels have equal sizes.
    """
    sizes = sizes_of(equation.terms, shapes)
    used = {label for term in equation.terms for label in term}
    unused = (label for label in map(chr, range(0xE000, 0xF8FF)) if label not in used)
    terms: list[tuple[str, ...]] = []
    for term, shape in zip(equation.terms, shapes, strict=True):
        labels = list(term)
        for axis, dim in enumerate(shape):
            if dim == 1 and sizes[labels[axis]] != 1:
                labels[axis] = next(unused)
        terms.append(tuple(labels))
    return Equation(tuple(terms), equation.out)
