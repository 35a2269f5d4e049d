"""What installed packages add by entry points, each loaded by itself.

One that cannot be loaded is left out with a warning that names its package, so that a mistake in
it stops only those who ask for it. ``--no-plugins`` and ``SMELT_NO_PLUGINS`` leave out all that
are not smelt's own; none of them is imported then.
"""

from __future__ import annotations

import os
import traceback
import warnings
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from smelt.distribution import NAME
from smelt.errors import SmeltError, UsageError

OWN = "smelt"
"""The package whose functions are not foreign."""

_PYTHON = (metadata.__file__, import_module.__code__.co_filename)
"""What imports a package, which says nothing of it."""

VARIABLE = "SMELT_NO_PLUGINS"

plugins_off: ContextVar[bool] = ContextVar("smelt.plugins_off", default=False)
"""Whether packages other than smelt are left out; the environment may say so, too."""


@dataclass(frozen=True)
class Extension:
    """An entry point: its ``name``, the ``package`` with its version, and what it names.

    ``error`` is the first line of why it cannot be loaded, or empty; ``place`` is the file and the
    line where that was raised.
    """

    group: str
    name: str
    package: str
    value: str
    loaded: Any = None
    error: str = ""
    place: str = ""


def without_plugins() -> bool:
    """True if only smelt's own entry points count."""
    said = os.environ.get(VARIABLE, "").strip().lower()
    return plugins_off.get() or said not in ("", "0", "false", "no", "off")


def points(group: str) -> tuple[metadata.EntryPoint, ...]:
    """The entry points of ``group`` that count, sorted by name; imports none of them."""
    off = without_plugins()
    return tuple(point for point in all_points(group) if is_own(point) or not off)


def all_points(group: str) -> tuple[metadata.EntryPoint, ...]:
    """The entry points of ``group``, also where plug-ins are left out; imports none of them."""
    return tuple(sorted(metadata.entry_points(group=group), key=lambda p: (p.name, p.value)))


def is_own(point: metadata.EntryPoint) -> bool:
    """True if ``point`` is one of smelt itself."""
    return point.dist is not None and point.dist.name == NAME


def extensions(group: str) -> tuple[Extension, ...]:
    """Every extension of ``group``, loaded, sorted by name; warns of those that cannot be."""
    found = tuple(load(point) for point in points(group))
    for item in found:
        if item.error:
            warn_left_out(item.name, item.package, item.error)
    return found


def warn_left_out(name: str, package: str, error: str) -> None:
    """Say that ``name`` of ``package`` is not there, and why."""
    warnings.warn(
        f"{name!r} of the package {package} cannot be loaded and is left out: {error} "
        "(`smelt plugins` says where)",
        stacklevel=3,
    )


def package_of(point: metadata.EntryPoint) -> str:
    """The package that declares ``point``, with its version."""
    owner = point.dist
    return f"{owner.name} {owner.version}" if owner is not None else point.value


def load(point: metadata.EntryPoint) -> Extension:
    """What ``point`` names, imported; whatever that raises is kept as its ``error``."""
    package = package_of(point)
    try:
        return Extension(point.group, point.name, package, point.value, point.load())
    except (Exception, SystemExit) as failure:  # noqa: BLE001 - a package may raise anything
        error = in_a_line(failure)
        return Extension(
            point.group, point.name, package, point.value, None, error, place_of(failure)
        )


def in_a_line(failure: BaseException) -> str:
    """What ``failure`` says, and where a declaration is wrong, in one line."""
    if isinstance(failure, SmeltError):
        return f"{failure.code} {': '.join([failure.what, '; '.join(failure.at)]).strip(': ')}"
    # A SyntaxError repeats its place in its text.
    said = failure.msg if isinstance(failure, SyntaxError) else failure
    return f"{type(failure).__name__}: {said}".strip().splitlines()[0]


def place_of(failure: BaseException) -> str:
    """``file:line`` where ``failure`` was raised, of smelt's own files only if there is no other;
    empty if no file of a package took part."""
    if isinstance(failure, SyntaxError) and failure.filename:
        return f"{failure.filename}:{failure.lineno}"
    frames = traceback.extract_tb(failure.__traceback__)
    files = [f for f in frames if not f.filename.startswith("<") and f.filename != __file__]
    here = str(Path(__file__).parent) + os.sep
    others = [f for f in files if not f.filename.startswith((here, *_PYTHON))]
    last = next(reversed(others or files), None)
    if last is None or last.filename in (metadata.__file__, os.__file__):
        return ""
    return f"{last.filename}:{last.lineno}"


def is_foreign(function: object) -> bool:
    """True for a function, or an object, of another package."""
    return _module(function).partition(".")[0] != OWN


def _module(function: object) -> str:
    return getattr(function, "__module__", None) or type(function).__module__


def blame(failure: Exception, function: object, what: str) -> None:
    """Raise UsageError E653 if ``failure`` comes from a ``function`` of another package.

    ``what`` names the function in the message. Errors of smelt's own kinds are left as they are.
    """
    errors = type(failure).__module__.partition(".")[0]
    if not is_foreign(function) or errors == OWN or isinstance(failure, MemoryError):
        return
    module = _module(function)
    raise UsageError(
        "E653",
        f"{what} fails",
        at=place_of(failure),
        why=in_a_line(failure),
        fix=f"report it to the authors of {module.partition('.')[0]!r}",
    ) from failure
