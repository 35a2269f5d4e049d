"""Replace attributes of modules and classes while smelt traces.

Only this file changes code of libraries and users. Other threads keep calling the originals, and
after the trace every thread does. A function that JAX traced and cached under some replacements is
reused only under the same replacements: they are part of a user context of JAX.
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
    """Replace the attribute ``name`` of ``owner`` by ``make(attribute)``.

    With ``after``, the original is called first, and the replacement only if that raises such an
    exception; if the replacement returns NotImplemented, the exception is raised. This keeps hot
    functions such as ``len`` fast. ``absent`` is the original of a class without the attribute.
    """

    owner: Any
    name: str
    make: Callable[[Function], Function]
    after: type[Exception] | None = None
    absent: Function | None = None
    _hash: int = field(init=False, repr=False, compare=False)
    _dispatchers: dict[Function, Function] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        # Hashed once: every call of the attribute looks the replacement up in its thread.
        fields = self.owner, self.name, self.make, self.after, self.absent
        object.__setattr__(self, "_hash", hash(fields))

    def __hash__(self) -> int:
        return self._hash

    def dispatcher(self, function: Function) -> Function:
        """Return the dispatcher for ``function``; the last one is cached for the next trace."""
        dispatcher = self._dispatchers.get(function)
        if dispatcher is None:
            self._dispatchers.clear()
            dispatcher = self._dispatchers[function] = _dispatcher(self, function)
        return dispatcher


class _Attribute:
    """A replaced attribute: its original, and how many traces use each replacement.

    Each replacement calls the one installed before it; the first calls the original.
    """

    def __init__(self, owner: Any, name: str, absent: Function | None) -> None:
        """Look up the attribute and whether ``owner`` has it itself or inherits it.

        ``users`` counts the traces that use each replacement; the last one restores ``own_value``.
        """
        self.owner = owner
        self.name = name
        self.is_own = name in vars(owner)
        self.own_value = vars(owner).get(name)
        inherited = isinstance(owner, type) and not self.is_own and hasattr(owner, name)
        self.original = _inherited(owner, name) if inherited else _attribute(owner, name, absent)
        self.users: dict[Replacement, int] = {}

    def count(self, replacement: Replacement, change: int) -> None:
        """Add or remove users of ``replacement``; without users, the original is restored."""
        before = self.users.get(replacement, 0)
        self.users[replacement] = before + change
        if before and before + change:
            return
        self.users = {user: count for user, count in self.users.items() if count}
        if self.users:
            function = self.original
            for user in self.users:
                function = user.dispatcher(function)
            setattr(self.owner, self.name, function)
        elif self.is_own:
            setattr(self.owner, self.name, self.own_value)
        else:
            delattr(self.owner, self.name)


_lock = threading.RLock()
_attributes: dict[tuple[int, str], _Attribute] = {}
_in_use = compat.user_context(None)
"""The replacements that this thread uses, None outside of traces."""


@contextmanager
def replaced(replacements: Sequence[Replacement]) -> Iterator[None]:
    """Use ``replacements`` in this thread within the ``with`` block.

    If two replace the same attribute, the later one calls the earlier one.
    """
    installed: list[Replacement] = []
    try:
        for replacement in replacements:
            _count(replacement, 1)
            installed.append(replacement)
        enclosing = _in_use.value or frozenset()
        with _in_use(_interned(enclosing.union(installed))):
            yield
    finally:
        for replacement in reversed(installed):
            _count(replacement, -1)


def is_tracing() -> bool:
    """True if smelt traces in this thread."""
    return _in_use.value is not None


def original(owner: Any, name: str) -> Function:
    """Return the attribute without replacements; raises AttributeError if there is none."""
    with _lock:
        attribute = _attributes.get((id(owner), name))
        function: Function = (
            attribute.original if attribute is not None else _attribute(owner, name)
        )
        return function


def _count(replacement: Replacement, change: int) -> None:
    """Change the number of users of ``replacement``; forget an attribute without users."""
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
    """Return one object for equal sets, because JAX compares it at every cache lookup."""
    return replacements


def _dispatcher(replacement: Replacement, function: Function) -> Function:
    """Return a function that calls the replacement in threads that use it, else ``function``."""
    substitute = replacement.make(function)
    failure = replacement.after or Exception

    @functools.wraps(function)
    def dispatch(*args: Any, **keywords: Any) -> Any:
        """Call the replacement if this thread uses it, else ``function``."""
        in_use = _in_use.value
        if in_use is None or replacement not in in_use:
            return function(*args, **keywords)
        return substitute(*args, **keywords)

    @functools.wraps(function)
    def dispatch_after(*args: Any, **keywords: Any) -> Any:
        """Call ``function``; if it fails in a thread that uses the replacement, call that."""
        try:
            return function(*args, **keywords)
        except failure:
            in_use = _in_use.value
            if in_use is None or replacement not in in_use:
                raise
            result = substitute(*args, **keywords)
            if result is NotImplemented:
                raise
            return result

    return dispatch if replacement.after is None else dispatch_after


def _attribute(owner: Any, name: str, absent: Function | None = None) -> Function:
    """Return the attribute; a name that a module lacks is looked up among Python's builtins."""
    if absent is not None and not hasattr(owner, name):
        return absent
    is_built_in = isinstance(owner, ModuleType) and name not in vars(owner)
    function: Function = getattr(builtins if is_built_in else owner, name)
    return function


def _inherited(cls: type, name: str) -> Function:
    """Return a method that looks up the base classes' attribute at each call, as ``super`` does."""

    @functools.wraps(getattr(cls, name))
    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        """Call the next definition of the method in the base classes."""
        bases = cls.__mro__[cls.__mro__.index(cls) + 1 :]
        definition = next(vars(base)[name] for base in bases if name in vars(base))
        return definition.__get__(self, type(self))(*args, **keywords)

    return method
