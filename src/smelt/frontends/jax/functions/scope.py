"""Which calls become functions, in this thread, at this moment.

A user context of JAX holds it: jitted functions are traced anew under another one, so what JAX
caches during a trace is not met outside, and what it cached before is not met inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from smelt.frontends.jax import compat


@dataclass(frozen=True)
class Chosen:
    """``domains`` of the classes whose calls become functions.

    Calls of ``repeated`` ones become functions if they hold modules and are called alike twice.
    """

    domains: tuple[tuple[type, str], ...] = ()
    repeated: frozenset[type] = frozenset()
    _found: Mapping[type, str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_found", dict(self.domains))

    def domain(self, cls: type) -> str | None:
        """The domain of the functions of ``cls``, None if its calls are inlined."""
        return self._found.get(cls)


_context = compat.user_context(None)


def chosen() -> Chosen | None:
    """What the trace that runs in this thread has chosen, None if there is none."""
    current: Chosen | None = _context.value
    return current


def choosing(choice: Chosen | None) -> AbstractContextManager[Any]:
    """Sets it for a ``with`` block."""
    context: AbstractContextManager[Any] = _context(choice)
    return context
