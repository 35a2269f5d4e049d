"""Attributes of modules and classes that something replaces while smelt traces.

The one place that changes code of libraries and users. Other threads call the originals all along,
and after the trace everyone does. What JAX caches of functions that it traced meanwhile, it keeps
for traces with the same replacements, because a user context of JAX holds those.
"""

from __future__ import annotations

import builtins
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, TypeAlias

from smelt.frontends.jax import compat

Function: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Replacement:
    """``make`` makes what is called instead of the attribute ``name`` of ``owner``, out of that.

    ``after`` an exception of that type only, where it is given, and the exception stands where what
    is made returns NotImplemented: code calls ``len`` so often that nothing may come before it.
    ``absent`` stands for the attribute of a class that has none.
    """

    owner: Any
    name: str
    make: Callable[[Function], Function]
    after: type[Exception] | None = None
    absent: Function | None = None
    _hash: int = field(init=False, repr=False, compare=False)
    _made: dict[Function, Function] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        # Every call of the attribute asks whether the replacement is in use in its thread.
        fields = self.owner, self.name, self.make, self.after, self.absent
        object.__setattr__(self, "_hash", hash(fields))

    def __hash__(self) -> int:
        return self._hash

    def instead_of(self, function: Function) -> Function:
        """What is put in the place of ``function``; the last one is kept for the next trace."""
        made = self._made.get(function)
        if made is None:
            self._made.clear()
            made = self._made[function] = _dispatcher(self, function)
        return made


class _Attribute:
    """An attribute that is replaced: what it was, and how many traces use each replacement.

    A replacement calls the one that was installed before it, and the first of them the original.
    """

    def __init__(self, owner: Any, name: str, absent: Function | None) -> None:
        self.owner = owner
        self.name = name
        self.is_own = name in vars(owner)
        self.held = vars(owner).get(name)
        inherited = isinstance(owner, type) and not self.is_own and hasattr(owner, name)
        self.original = _inherited(owner, name) if inherited else _found(owner, name, absent)
        self.users: dict[Replacement, int] = {}

    def count(self, replacement: Replacement, change: int) -> None:
        """Add a user of ``replacement``, or take one away; the last one puts the original back."""
        before = self.users.get(replacement, 0)
        self.users[replacement] = before + change
        if before and before + change:
            return
        self.users = {known: count for known, count in self.users.items() if count}
        if self.users:
            function = self.original
            for each in self.users:
                function = each.instead_of(function)
            setattr(self.owner, self.name, function)
        elif self.is_own:
            setattr(self.owner, self.name, self.held)
        else:
            delattr(self.owner, self.name)


_lock = threading.RLock()
_attributes: dict[tuple[int, str], _Attribute] = {}
_in_use = compat.user_context(None)


@contextmanager
def replaced(replacements: Sequence[Replacement]) -> Iterator[None]:
    """Let ``replacements`` be called, in this thread, within the ``with`` block.

    Of two for one attribute, the later one calls the earlier one.
    """
    installed: list[Replacement] = []
    try:
        for each in replacements:
            _count(each, 1)
            installed.append(each)
        with _in_use(_interned(frozenset((*(_in_use.value or ()), *installed)))):
            yield
    finally:
        for each in reversed(installed):
            _count(each, -1)


def is_tracing() -> bool:
    """True if a trace of smelt runs in this thread."""
    return _in_use.value is not None


def original(owner: Any, name: str) -> Function:
    """The attribute as it is outside of traces; raises AttributeError if there is none."""
    with _lock:
        known = _attributes.get((id(owner), name))
        function: Function = known.original if known is not None else _found(owner, name)
        return function


def _count(replacement: Replacement, change: int) -> None:
    key = id(replacement.owner), replacement.name
    with _lock:
        attribute = _attributes.get(key)
        if attribute is None:
            attribute = _attributes[key] = _Attribute(
                replacement.owner, replacement.name, replacement.absent
            )
        try:
            attribute.count(replacement, change)
        finally:
            if not attribute.users:
                del _attributes[key]


@functools.lru_cache(maxsize=64)
def _interned(replacements: frozenset[Replacement]) -> frozenset[Replacement]:
    """One object for equal ones: JAX compares it wherever it looks into a cache."""
    return replacements


def _dispatcher(replacement: Replacement, function: Function) -> Function:
    instead = replacement.make(function)
    failure = replacement.after or Exception

    @functools.wraps(function)
    def dispatch(*args: Any, **keywords: Any) -> Any:
        in_use = _in_use.value
        if in_use is None or replacement not in in_use:
            return function(*args, **keywords)
        return instead(*args, **keywords)

    @functools.wraps(function)
    def dispatch_after(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except failure:
            in_use = _in_use.value
            if in_use is None or replacement not in in_use:
                raise
            result = instead(*args, **keywords)
            if result is NotImplemented:
                raise
            return result

    return dispatch if replacement.after is None else dispatch_after


def _found(owner: Any, name: str, absent: Function | None = None) -> Function:
    """The attribute; what code of a module finds under a name that it lacks is built in."""
    if absent is not None and not hasattr(owner, name):
        return absent
    is_built_in = isinstance(owner, ModuleType) and name not in vars(owner)
    function: Function = getattr(builtins if is_built_in else owner, name)
    return function


def _inherited(cls: type, name: str) -> Function:
    """The method that ``cls`` has from its bases, looked up when it is called, as by ``super``."""

    @functools.wraps(getattr(cls, name))
    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        after = cls.__mro__[cls.__mro__.index(cls) + 1 :]
        held = next(vars(base)[name] for base in after if name in vars(base))
        return held.__get__(self, type(self))(*args, **keywords)

    return method
