"""The mark of a call: all that lowering has to know of it, as the name of a jitted function.

JAX keeps that name through ``vmap``, ``grad`` and its caches, so nothing has to be kept beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

DOMAIN = "smelt.fn"
"""The domain of functions without a namespace of their own."""

_START = "smelt.function"
_BETWEEN = "|"


@dataclass(frozen=True)
class Mark:
    """``target`` is ``module:qualname`` of what is called, ``arguments`` names its arrays.

    ``kept`` is False for a call that is inlined if nothing else calls its function.
    """

    domain: str
    name: str
    target: str
    arguments: tuple[str, ...] = ()
    kept: bool = True

    def __str__(self) -> str:
        kept = "kept" if self.kept else "repeated"
        parts = (_START, self.domain, self.name, self.target, ",".join(self.arguments), kept)
        return _BETWEEN.join(parts)


def read(name: str) -> Mark | None:
    """The mark that ``name`` is, None for the names of other jitted functions."""
    parts = name.split(_BETWEEN)
    if len(parts) != 6 or parts[0] != _START:
        return None
    _, domain, called, target, arguments, kept = parts
    names = tuple(filter(None, arguments.split(",")))
    return Mark(domain, called, target, names, kept == "kept")


def widened(name: str, counts: Sequence[int]) -> str:
    """``name`` of a call that passes ``counts[i]`` operands for each one before.

    Its last operands have the names that its mark gives them; those of one become ``z_0, z_1``.
    """
    mark = read(name)
    if mark is None or not mark.arguments:
        return name
    pairs = zip(mark.arguments, counts[-len(mark.arguments) :], strict=True)
    names = (
        (argument,) if count == 1 else (f"{argument}_{i}" for i in range(count))
        for argument, count in pairs
    )
    return str(replace(mark, arguments=tuple(name for group in names for name in group)))
