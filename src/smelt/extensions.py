"""Load what installed packages add by entry points, each by itself.

An entry point that cannot be loaded is skipped with a warning that names its package, so that its
mistake affects only those who request it. ``--no-plugins`` and ``SMELT_NO_PLUGINS`` skip all entry
points of other packages; none of them is imported then.
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
"""The package of smelt itself."""

_PYTHON = (metadata.__file__, import_module.__code__.co_filename)
"""Files of the import system, which are no place of an error."""

VARIABLE = "SMELT_NO_PLUGINS"

plugins_off: ContextVar[bool] = ContextVar("smelt.plugins_off", default=False)
"""Whether plug-ins are disabled; the environment variable disables them, too."""


@dataclass(frozen=True)
class Extension:
    """An entry point: its ``name``, the ``package`` with its version, and the loaded object.

    ``error`` is the first line of the load error, or empty; ``place`` is its file and line.
    """

    group: str
    name: str
    package: str
    value: str
    loaded: Any = None
    error: str = ""
    place: str = ""


def without_plugins() -> bool:
    """True if only smelt's own entry points are used."""
    setting = os.environ.get(VARIABLE, "").strip().lower()
    return plugins_off.get() or setting not in ("", "0", "false", "no", "off")


def points(group: str) -> tuple[metadata.EntryPoint, ...]:
    """Return the enabled entry points of ``group``, sorted by name; imports none of them."""
    off = without_plugins()
    return tuple(point for point in all_points(group) if is_own(point) or not off)


def all_points(group: str) -> tuple[metadata.EntryPoint, ...]:
    """Return the entry points of ``group``, even if plug-ins are disabled; imports none of them."""
    return tuple(sorted(metadata.entry_points(group=group), key=lambda p: (p.name, p.value)))


def is_own(point: metadata.EntryPoint) -> bool:
    """True if ``point`` belongs to smelt itself."""
    return point.dist is not None and point.dist.name == NAME


def extensions(group: str) -> tuple[Extension, ...]:
    """Load every extension of ``group`` and return them sorted by name, failures included.

    Warns of each extension that cannot be loaded.
    """
    found = tuple(load(point) for point in points(group))
    for item in found:
        if item.error:
            warn_left_out(item.name, item.package, item.error)
    return found


def warn_left_out(name: str, package: str, error: str) -> None:
    """Warn that ``name`` of ``package`` cannot be loaded, and why."""
    warnings.warn(
        f"{name!r} of the package {package} cannot be loaded and is left out: {error} "
        "(`smelt plugins` says where)",
        stacklevel=3,
    )


def package_of(point: metadata.EntryPoint) -> str:
    """Return the package that declares ``point``, with its version."""
    owner = point.dist
    return f"{owner.name} {owner.version}" if owner is not None else point.value


def load(point: metadata.EntryPoint) -> Extension:
    """Return the extension that ``point`` names; an exception of the import is its ``error``."""
    package = package_of(point)
    try:
        return Extension(point.group, point.name, package, point.value, point.load())
    except (Exception, SystemExit) as failure:  # noqa: BLE001 - a package may raise anything
        error = in_a_line(failure)
        return Extension(
            point.group,
            point.name,
            package,
            point.value,
            loaded=None,
            error=error,
            place=place_of(failure),
        )


def in_a_line(failure: BaseException) -> str:
    """Return the message of ``failure`` in one line."""
    if isinstance(failure, SmeltError):
        return f"{failure.code} {': '.join([failure.what, '; '.join(failure.at)]).strip(': ')}"
    # The text of a SyntaxError also contains its place.
    message = failure.msg if isinstance(failure, SyntaxError) else failure
    return f"{type(failure).__name__}: {message}".strip().splitlines()[0]


def place_of(failure: BaseException) -> str:
    """Return ``file:line`` where ``failure`` was raised, preferably outside smelt; else empty."""
    if isinstance(failure, SyntaxError) and failure.filename:
        return f"{failure.filename}:{failure.lineno}"
    frames = traceback.extract_tb(failure.__traceback__)
    files = [f for f in frames if not f.filename.startswith("<") and f.filename != __file__]
    here = str(Path(__file__).parent) + os.sep
    other_files = [f for f in files if not f.filename.startswith((here, *_PYTHON))]
    last = next(reversed(other_files or files), None)
    if last is None or last.filename in (metadata.__file__, os.__file__):
        return ""
    return f"{last.filename}:{last.lineno}"


def is_foreign(function: object) -> bool:
    """True for a function or an object of another package."""
    return _module(function).partition(".")[0] != OWN


def _module(function: object) -> str:
    return getattr(function, "__module__", None) or type(function).__module__


def blame(failure: Exception, function: object, what: str) -> None:
    """Raise UsageError E653 if ``function``, which raised ``failure``, is of another package.

    The error tells users to report the failure to that package. ``what`` names the function in the
    message. Does nothing for smelt's own functions, for smelt's errors, and for MemoryError.
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
