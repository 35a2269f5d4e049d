"""``__call__`` of chosen classes: marked while traces run, then as it was before."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from smelt.frontends.jax import compat
from smelt.frontends.jax.functions import calls, kinds
from smelt.frontends.jax.functions.marks import Mark
from smelt.frontends.jax.functions.scope import chosen


@dataclass
class _Patch:
    """How many traces use it, and what stood in the class itself, if anything did."""

    users: int
    own: Any


compat.hide_frames(__file__)

_lock = threading.RLock()
_patches: dict[type, _Patch] = {}


@contextmanager
def patched(classes: Iterable[type]) -> Iterator[None]:
    """Mark calls of instances of ``classes`` within the ``with`` block, in traces that chose them.

    Other threads see classes that behave as before.
    """
    done: list[type] = []
    try:
        for cls in classes:
            _install(cls)
            done.append(cls)
        yield
    finally:
        for cls in reversed(done):
            _restore(cls)


def _install(cls: type) -> None:
    with _lock:
        known = _patches.get(cls)
        if known is not None:
            known.users += 1
            return
        own = vars(cls).get("__call__")
        setattr(cls, "__call__", _dispatcher(cls, own))  # noqa: B010 - "cls.__call__" is no field
        _patches[cls] = _Patch(1, own)


def _restore(cls: type) -> None:
    with _lock:
        patch = _patches[cls]
        patch.users -= 1
        if patch.users:
            return
        del _patches[cls]
        if patch.own is None:
            delattr(cls, "__call__")
        else:
            setattr(cls, "__call__", patch.own)  # noqa: B010


def _dispatcher(cls: type, own: Any) -> Callable[..., Any]:
    @functools.wraps(_found(cls))
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        inner = own if own is not None else _found(cls, after=cls)
        fn = inner.__get__(self, type(self))
        choice = chosen()
        domain = choice.domain(cls) if choice is not None else None
        if choice is None or domain is None:
            return fn(*args, **kwargs)
        kept = cls not in choice.repeated
        if not kept and not kinds.holds_modules(self):
            return fn(*args, **kwargs)
        # A subclass that gets here by super() computes more than this function does.
        named = type(self) if _found(type(self)) is __call__ else cls
        target = f"{named.__module__}:{named.__qualname__}"
        mark = Mark(domain, named.__name__, target, kept=kept)
        return calls.marked(mark, fn, args, kwargs)

    return __call__


def _found(cls: type, after: type | None = None) -> Any:
    """``__call__`` as ``cls`` finds it, unbound; ``after`` a class, as ``super`` does."""
    order = cls.__mro__
    start = 0 if after is None else order.index(after) + 1
    return next(vars(base)["__call__"] for base in order[start:] if "__call__" in vars(base))
