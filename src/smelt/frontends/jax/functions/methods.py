"""Mark the calls of ``__call__`` of chosen classes while a trace runs."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from smelt.frontends.jax import frames
from smelt.frontends.jax.functions import calls, objects
from smelt.frontends.jax.functions.marks import Mark
from smelt.frontends.jax.patching.replacement import Function, Replacement

frames.hide_frames(__file__)


@dataclass(frozen=True)
class _Marking:
    """Replaces ``__call__`` of ``cls`` by a method that marks its calls.

    If ``kept`` is False, calls become functions only if the module contains other modules and at
    least two calls have equal bodies.
    """

    cls: type
    domain: str
    kept: bool

    def __call__(self, function: Function) -> Function:
        """Return the method that marks its calls, and calls ``function`` as a method."""

        @functools.wraps(function)
        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            """Call the module's method as a marked call."""
            fn = getattr(function, "__get__")(module, type(module))  # noqa: B009 - not of Callable
            if not self.kept and not objects.holds_modules(module):
                return fn(*args, **kwargs)
            # A subclass that calls this method by super() computes more than the method.
            owner = type(module) if _definer(type(module)) is self.cls else self.cls
            target = f"{owner.__module__}:{owner.__qualname__}"
            mark = Mark(self.domain, owner.__name__, target, kept=self.kept)
            return calls.call_marked(mark, fn, args, kwargs)

        return __call__


def marking(cls: type, domain: str, *, kept: bool = True) -> Replacement:
    """Return the replacement that marks calls of ``cls`` objects as functions in ``domain``."""
    return Replacement(cls, "__call__", _Marking(cls, domain, kept))


def _definer(cls: type) -> type:
    """Return the class that defines the ``__call__`` of ``cls``."""
    return next(base for base in cls.__mro__ if "__call__" in vars(base))
