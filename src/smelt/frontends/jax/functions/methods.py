"""``__call__`` of chosen classes, whose calls are marked while a trace runs."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from smelt.frontends.jax import frames
from smelt.frontends.jax.functions import calls, objects
from smelt.frontends.jax.functions.marks import Mark
from smelt.frontends.jax.replacement import Function, Replacement

frames.hide_frames(__file__)


@dataclass(frozen=True)
class _Marking:
    """Makes ``__call__`` of ``cls`` one that marks its calls.

    ``kept`` is False for calls that become functions only if they hold modules and are called
    alike twice.
    """

    cls: type
    domain: str
    kept: bool

    def __call__(self, function: Function) -> Function:
        @functools.wraps(function)
        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            fn = getattr(function, "__get__")(module, type(module))  # noqa: B009 - not of Callable
            if not self.kept and not objects.holds_modules(module):
                return fn(*args, **kwargs)
            # A subclass that gets here by super() computes more than this function does.
            named = type(module) if _definer(type(module)) is self.cls else self.cls
            target = f"{named.__module__}:{named.__qualname__}"
            mark = Mark(self.domain, named.__name__, target, kept=self.kept)
            return calls.marked(mark, fn, args, kwargs)

        return __call__


def marking(cls: type, domain: str, *, kept: bool = True) -> Replacement:
    """Marks the calls of instances of ``cls`` as calls of functions in ``domain``."""
    return Replacement(cls, "__call__", _Marking(cls, domain, kept))


def _definer(cls: type) -> type:
    """The class that ``cls`` has its ``__call__`` from."""
    return next(base for base in cls.__mro__ if "__call__" in vars(base))
