"""What installed packages add by entry points, each loaded by itself.

One that cannot be loaded is left out with a warning that names its package, so that a mistake in
it stops only those who ask for it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import metadata
from typing import Any


@dataclass(frozen=True)
class Extension:
    """An entry point: its ``name``, the ``package`` with its version, and what it names.

    ``error`` says why it cannot be loaded, or is empty.
    """

    group: str
    name: str
    package: str
    value: str
    loaded: Any = None
    error: str = ""


def extensions(group: str) -> tuple[Extension, ...]:
    """Every extension of ``group``, loaded, sorted by name; warns of those that cannot be."""
    points = sorted(metadata.entry_points(group=group), key=lambda p: (p.name, p.value))
    return tuple(_load(point) for point in points)


def package_of(point: metadata.EntryPoint) -> str:
    """The package that declares ``point``, with its version."""
    owner = point.dist
    return f"{owner.name} {owner.version}" if owner is not None else point.value


def _load(point: metadata.EntryPoint) -> Extension:
    package = package_of(point)
    try:
        return Extension(point.group, point.name, package, point.value, point.load())
    except Exception as failure:  # noqa: BLE001 - a package may raise anything when it is imported
        error = f"{type(failure).__name__}: {failure}"
        warnings.warn(
            f"{point.name!r} of the package {package} cannot be loaded and is left out: {error}",
            stacklevel=2,
        )
        return Extension(point.group, point.name, package, point.value, None, error)
