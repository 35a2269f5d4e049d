"""Things by name, each with one owner: operators, lowerings, kernels, passes and targets.

A registry is filled when it is first asked: by importing the modules that hold its things, or from
the entry points of installed packages. A name has one owner, and another who claims it is refused,
since which of them counts would depend on the order of imports. What the same function of the same
module adds again, replaces: a module was reloaded, or a cell of a notebook ran again.
"""

from __future__ import annotations

import pkgutil
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any, Generic, TypeVar

from smelt.errors import UsageError
from smelt.extensions import load, package_of

Key = TypeVar("Key", bound=Hashable)
Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Owner:
    """Where a thing is declared, and in which installed package; the place alone decides."""

    place: str
    package: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.place} (package {self.package})" if self.package else self.place


def owner_of(function: Callable[..., Any], package: str = "") -> Owner:
    """The owner of what ``function`` declares: its module and its name there."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return Owner(f"{function.__module__}.{name}", package)


class _Entry(Generic[Thing]):
    """What is called so, or why it cannot be had; ``load`` is None once that is known."""

    def __init__(self, owner: Owner, load: Callable[[], Thing] | None) -> None:
        self.owner, self.load = owner, load
        self.error: UsageError | None = None
        self.thing: Thing

    def load_now(self) -> None:
        if self.load is None:
            return
        try:
            self.thing = self.load()
        except UsageError as error:
            self.error = error
        self.load = None


class Registry(Mapping[Key, Thing]):
    """The things of one kind; ``called`` names one of them in the error ``code`` of a clash.

    ``fill`` adds them, once in a process; it may look up what it has added so far.
    """

    def __init__(
        self, code: str, called: Callable[[Key], str], fill: Callable[[], object] = lambda: None
    ) -> None:
        self._code, self._called, self._find = code, called, fill
        self._entries: dict[Key, _Entry[Thing]] = {}
        self._filled = self._filling = False
        self._lock = threading.RLock()

    def add(self, key: Key, thing: Thing, owner: Owner) -> bool:
        """Add a thing; False if it is there. A UsageError is a clash."""
        known = self._entries.get(key)
        if known is not None and getattr(known, "thing", None) is thing:
            return False
        entry: _Entry[Thing] = _Entry(owner, None)
        entry.thing = thing
        self._put(key, entry)
        return True

    def add_late(self, key: Key, load: Callable[[], Thing], owner: Owner) -> None:
        """Add what ``load`` returns when somebody asks; a UsageError is its answer for good."""
        self._put(key, _Entry(owner, load))

    def add_error(self, key: Key, error: UsageError) -> None:
        """Let ``error`` be the answer to whoever asks for ``key``, which is there."""
        entry: _Entry[Thing] = _Entry(self._entries[key].owner, None)
        entry.error = error
        self._entries[key] = entry

    def _put(self, key: Key, entry: _Entry[Thing]) -> None:
        with self._lock:
            known = self._entries.get(key)
            if known is not None and known.owner != entry.owner:
                raise UsageError(
                    self._code,
                    f"two {self._called(key)}",
                    at=(str(known.owner), str(entry.owner)),
                    why="which one counts would depend on the order of imports",
                    fix="rename one of them, or uninstall its package",
                )
            self._entries[key] = entry

    def owner(self, key: Key) -> Owner:
        """Who added ``key``; loads nothing."""
        self.fill()
        return self._entries[key].owner

    def __getitem__(self, key: Key) -> Thing:
        self.fill()
        entry = self._entries[key]
        if entry.load is not None:
            with self._lock:
                entry.load_now()
        if entry.error is not None:
            raise entry.error.with_traceback(None)
        return entry.thing

    def __contains__(self, key: object) -> bool:
        self.fill()
        return key in self._entries

    def __iter__(self) -> Iterator[Key]:
        self.fill()
        return iter(tuple(self._entries))

    def __len__(self) -> int:
        self.fill()
        return len(self._entries)

    def fill(self) -> None:
        """Add all that is to be found; nothing but the first call does something."""
        if self._filled:
            return
        with self._lock:
            if self._filled or self._filling:
                return
            self._filling = True
            try:
                self._find()
                self._filled = True
            finally:
                self._filling = False

    @contextmanager
    def refilled(self) -> Iterator[None]:
        """Filled anew inside, as if packages had been installed meanwhile; as it was afterwards."""
        self.fill()
        entries = self._entries
        self._entries, self._filled = dict(entries), False
        try:
            yield
        finally:
            self._entries, self._filled = entries, True


def modules_in(package: str) -> Iterator[ModuleType]:
    """Every module of ``package``, imported, in the order of their names."""
    for module in pkgutil.iter_modules(import_module(package).__path__):
        yield import_module(f"{package}.{module.name}")


def modules_of(package: str) -> Callable[[], object]:
    """What imports every module of ``package``."""
    return lambda: list(modules_in(package))


def owner_of_point(point: EntryPoint) -> Owner:
    """The owner of what ``point`` names."""
    return Owner(point.value, package_of(point))


def named_by(point: EntryPoint, kind: type[Thing], what: str) -> Thing:
    """The thing that ``point`` names, imported; ``what`` is what a message calls it.

    Raises UsageError E615 if it cannot be loaded, or is of another kind.
    """
    extension = load(point)
    why = extension.error
    if not why and isinstance(extension.loaded, kind):
        return extension.loaded
    raise UsageError(
        "E615",
        f"the {what} {point.name!r} cannot be loaded",
        at=f"package {extension.package}",
        why=why or f"{point.value} is no {kind.__name__}",
        fix="upgrade or uninstall the package",
    )
