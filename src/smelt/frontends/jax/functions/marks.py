"""The mark of a call, encoded in the name of the jitted function.

The mark holds everything that lowering needs to know about the call. JAX keeps that name through
``vmap``, ``grad`` and its caches, so no side table is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

DOMAIN = "smelt.fn"
"""The domain of functions without a namespace of their own."""

_START = "smelt.function"
_SEPARATOR = "|"


@dataclass(frozen=True)
class Mark:
    """The function that a call refers to.

    ``target`` is ``module:qualname`` of the callee, ``arguments`` names its array operands.
    If ``kept`` is False, the call is inlined if it is the only call of its function.
    """

    domain: str
    name: str
    target: str
    arguments: tuple[str, ...] = ()
    kept: bool = True

    def __str__(self) -> str:
        """Return the mark as text, which ``read_mark`` reads."""
        kept = "kept" if self.kept else "repeated"
        parts = (_START, self.domain, self.name, self.target, ",".join(self.arguments), kept)
        return _SEPARATOR.join(parts)


def read_mark(name: str) -> Mark | None:
    """Return the mark encoded in ``name``; None for other jitted functions."""
    fields = name.split(_SEPARATOR)
    if len(fields) != 6 or fields[0] != _START:
        return None
    _, domain, called, target, arguments, kept = fields
    names = tuple(filter(None, arguments.split(",")))
    return Mark(domain, called, target, names, kept == "kept")


def with_more_operands(name: str, counts: Sequence[int]) -> str:
    """Return ``name`` for a call that passes ``counts[i]`` operands in place of operand i.

    The mark names the last operands. Operand ``z`` that becomes two is named ``z_0, z_1``.
    """
    mark = read_mark(name)
    if mark is None or not mark.arguments:
        return name
    names: list[str] = []
    for argument, count in zip(mark.arguments, counts[-len(mark.arguments) :], strict=True):
        names += [argument] if count == 1 else [f"{argument}_{i}" for i in range(count)]
    return str(replace(mark, arguments=tuple(names)))
