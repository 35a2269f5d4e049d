"""Registries of named things with one owner each: operators, lowerings, kernels, passes, targets.

A registry is filled on first use, by importing modules or from entry points of installed packages.
A second owner of a name is refused, since the result would depend on the order of imports. If the
same function of the same module adds a name again, it replaces the first: the module was reloaded,
or a notebook cell ran again.
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
    """The ``place`` that declares a thing, such as ``module.function``, and its package.

    Two owners are equal if their places are.
    """

    place: str
    package: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.place} (package {self.package})" if self.package else self.place


def owner_of(function: Callable[..., Any], package: str = "") -> Owner:
    """Return the owner of what ``function`` declares: its module and name."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return Owner(f"{function.__module__}.{name}", package)


class _Entry(Generic[Thing]):
    """A registered thing, or the error of loading it; ``load`` is None once it is loaded."""

    def __init__(self, owner: Owner, load: Callable[[], Thing] | None) -> None:
        """Hold the thing of ``owner``, which ``load`` makes on first use.

        ``error`` is the UsageError that ``load`` raised, if it failed.
        """
        self.owner, self.load = owner, load
        self.error: UsageError | None = None
        self.thing: Thing

    def load_now(self) -> None:
        """Load the thing, or store the UsageError."""
        if self.load is None:
            return
        try:
            self.thing = self.load()
        except UsageError as error:
            self.error = error
        self.load = None


class Registry(Mapping[Key, Thing]):
    """The things of one kind, by name.

    Two owners of one key raise a UsageError with ``code``. Its text is "two " and ``plural(key)``,
    such as "two kernels of Conv that emit C". ``add_all`` adds the things; it is called once in a
    process, on the first look-up, and may look up the things that it has added so far.
    """

    def __init__(
        self, code: str, plural: Callable[[Key], str], add_all: Callable[[], object] = lambda: None
    ) -> None:
        self._code, self._plural, self._add_all = code, plural, add_all
        self._then: list[Callable[[], None]] = []
        self._entries: dict[Key, _Entry[Thing]] = {}
        self._filled = self._filling = False
        self._lock = threading.RLock()

    def add(self, key: Key, thing: Thing, owner: Owner) -> bool:
        """Add a thing; False if it is already there. Raises a UsageError for a clash."""
        known = self._entries.get(key)
        if known is not None and getattr(known, "thing", None) is thing:
            return False
        entry: _Entry[Thing] = _Entry(owner, None)
        entry.thing = thing
        self._put(key, entry)
        return True

    def add_late(self, key: Key, load: Callable[[], Thing], owner: Owner) -> None:
        """Add a thing that ``load`` makes on first access.

        If ``load`` raises a UsageError, each access raises it.
        """
        self._put(key, _Entry(owner, load))

    def add_error(self, key: Key, error: UsageError) -> None:
        """Make access to ``key``, which is registered, raise ``error``."""
        entry: _Entry[Thing] = _Entry(self._entries[key].owner, None)
        entry.error = error
        self._entries[key] = entry

    def _put(self, key: Key, entry: _Entry[Thing]) -> None:
        """Store ``entry``; raises UsageError if another owner has the key."""
        with self._lock:
            known = self._entries.get(key)
            if known is not None and known.owner != entry.owner:
                raise UsageError(
                    self._code,
                    f"two {self._plural(key)}",
                    at=(str(known.owner), str(entry.owner)),
                    why="which one counts would depend on the order of imports",
                    fix="rename one of them, or uninstall its package",
                )
            self._entries[key] = entry

    def owner(self, key: Key) -> Owner:
        """Return the owner of ``key``; loads nothing."""
        self.fill()
        return self._entries[key].owner

    def __getitem__(self, key: Key) -> Thing:
        """Return the thing called ``key``, loaded on first use; raises the error of a failed load
        again.
        """
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

    def when_filled(self, add: Callable[[], None]) -> Callable[[], None]:
        """Decorate a function to run after ``add_all``; it adds things made from all others."""
        self._then.append(add)
        return add

    def fill(self) -> None:
        """Call ``add_all``, then the functions of ``when_filled``; later calls do nothing."""
        if self._filled:
            return
        with self._lock:
            if self._filled or self._filling:
                return
            self._filling = True
            try:
                self._add_all()
                for add in self._then:
                    add()
                self._filled = True
            finally:
                self._filling = False

    @contextmanager
    def refilled(self) -> Iterator[None]:
        """Fill the registry again for the block, and restore it afterwards.

        Tests use it to see entry points of packages that were installed in the meantime.
        """
        self.fill()
        entries = self._entries
        self._entries, self._filled = dict(entries), False
        try:
            yield
        finally:
            self._entries, self._filled = entries, True


def modules_in(package: str) -> Iterator[ModuleType]:
    """Yield every module of ``package``, imported, in the order of names."""
    for module in pkgutil.iter_modules(import_module(package).__path__):
        yield import_module(f"{package}.{module.name}")


def modules_of(package: str) -> Callable[[], object]:
    """Return a function that imports every module of ``package``."""
    return lambda: list(modules_in(package))


def owner_of_point(point: EntryPoint) -> Owner:
    """Return the owner of what ``point`` names."""
    return Owner(point.value, package_of(point))


def named_by(point: EntryPoint, kind: type[Thing], what: str) -> Thing:
    """Import and return what ``point`` names; ``what`` describes it in messages.

    Raises UsageError E615 if it cannot be loaded or has another type.
    """
    extension = load(point)
    why = extension.error
    if not why and isinstance(extension.loaded, kind):
        return extension.loaded
    raise UsageError(
        "E615",
        f"the {what} {point.name!r} cannot be loaded",
        at=f"package {extension.package}",
        why=why or f"{point.value} is not of the type {kind.__name__}",
        fix="upgrade or uninstall the package",
    )
