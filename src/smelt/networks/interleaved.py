"""The interleaved form of einsum: ``einsum(x, [0, 1], y, [1, 2], [0, 2])``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from smelt.errors import UsageError

FIRST_LABEL = 0x100
"""The first character that stands for a label: letters of many scripts follow it."""


def split_operands(given: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return the equation and the operands of a call, in either form of ``numpy.einsum``.

    Labels of the interleaved form are any hashable objects, and ``...`` stands for an ellipsis.
    Without labels for the result, it has those that occur once, sorted, or in order of appearance
    if they cannot be sorted. Raises UsageError E655.
    """
    if given and isinstance(given[0], str):
        return given[0], list(given[1:])
    if len(given) < 2:
        raise _malformed(f"a call with {len(given)} arguments has no labels")
    operands = list(given[: len(given) - len(given) % 2 : 2])
    terms = [_labels(term) for term in given[1::2]]
    out = _labels(given[-1]) if len(given) % 2 else None
    occurring = dict.fromkeys(label for term in terms for label in term if label is not ...)
    try:
        in_order = sorted(occurring)  # type: ignore[type-var]
    except TypeError:  # labels of several types
        in_order = list(occurring)
    character = {label: chr(FIRST_LABEL + index) for index, label in enumerate(in_order)}
    for label in out or ():
        if label is not ... and label not in character:
            raise _malformed(f"no operand has the label {label!r} of the result")

    def text(term: Sequence[Hashable]) -> str:
        """Return the labels ``term`` as a term of an equation."""
        return "".join("..." if label is ... else character[label] for label in term)

    equation = ",".join(map(text, terms))
    return (equation if out is None else f"{equation}->{text(out)}"), operands


def _labels(term: Any) -> tuple[Hashable, ...]:
    """Return the labels of one operand; raises UsageError E655."""
    try:
        labels = tuple(term)
        hash(labels)
    except TypeError as error:
        raise _malformed(f"{type(term).__name__} is no list of labels") from error
    return labels


def _malformed(why: str) -> UsageError:
    """Return E655: the call has no equation."""
    return UsageError(
        "E655",
        "the operands and labels do not alternate",
        why=why,
        fix="give an equation first, einsum('ab,bc->ac', x, y), or labels after each operand, "
        "einsum(x, [0, 1], y, [1, 2], [0, 2])",
    )
