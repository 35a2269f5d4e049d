"""Load every plug-in of the installed packages and report which ones fail."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import EntryPoint
from typing import Any

from smelt import extensions
from smelt.errors import SmeltError
from smelt.extensions import Extension
from smelt.native.kernels import foreign
from smelt.operators import registry as operators
from smelt.passes import registry as passes
from smelt.passes.base import Pass
from smelt.targets import registry as targets
from smelt.targets.base import Target

LOWERINGS = "smelt.lowerings"


@dataclass(frozen=True)
class Plugin:
    """One entry point of a package other than smelt.

    ``state`` is ``ok``, ``error``, or ``off`` if plug-ins are disabled and nothing is imported.
    ``error`` is one line, ``place`` the file and line where it was raised.
    """

    package: str
    version: str
    group: str
    name: str
    state: str
    error: str = ""
    place: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return asdict(self)


def plugins() -> list[Plugin]:
    """Return every plug-in, sorted by package, group and name."""
    are_disabled = extensions.without_plugins()
    result = []
    for group, problem_of in GROUPS.items():
        foreign_points = [
            point for point in extensions.all_points(group) if not extensions.is_own(point)
        ]
        name_counts = Counter(
            point.name.replace("-", "_") for point in extensions.all_points(group)
        )
        result += [
            _plugin(point, name_counts, problem_of, are_disabled) for point in foreign_points
        ]
    return sorted(result, key=lambda item: (item.package, item.group, item.name))


def _plugin(
    point: EntryPoint,
    name_counts: Counter[str],
    problem_of: Callable[[Extension], str],
    are_disabled: bool,
) -> Plugin:
    """Load one entry point and return its Plugin, with the error if it fails."""
    owner = point.dist
    package, version = (owner.name, owner.version) if owner is not None else ("?", "?")
    if are_disabled:
        return Plugin(package, version, point.group, point.name, "off")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        extension = extensions.load(point)
        error, place = extension.error, extension.place
        if not error:
            error = problem_of(extension)
        name = point.name.replace("-", "_")
        is_taken = name_counts[name] > 1 or name in _our_passes(point)
        if not error and point.group in NAMED and is_taken:
            error = f"another package registers the name {point.name!r}, too"
    state = "error" if error else "ok"
    return Plugin(package, version, point.group, point.name, state, error, place)


def _our_passes(point: EntryPoint) -> frozenset[str]:
    """Return the names of smelt's own passes; empty for other groups."""
    if point.group != passes.ENTRY_POINTS:
        return frozenset()
    return frozenset(pass_.name for _, pass_ in passes.own_passes())


def _pass_problem(extension: Extension) -> str:
    """Return the problem if the entry point is not a Pass, else ""."""
    return "" if isinstance(extension.loaded, Pass) else f"{extension.value} is not a Pass"


def _target_problem(extension: Extension) -> str:
    """Return the problem if the entry point is not a Target, else ""."""
    return "" if isinstance(extension.loaded, Target) else f"{extension.value} is not a Target"


def _operators_problem(extension: Extension) -> str:
    """Register the operators and return "", or return the problem."""
    try:
        operators.register(*operators.checked(extension.name, extension.loaded))
    except SmeltError as error:
        return f"{error.code} {error.what}"
    return ""


def _lowerings_problem(_: Extension) -> str:
    """Return "": the import of the module has registered its lowerings."""
    return ""


def _kernels_problem(extension: Extension) -> str:
    """Register the kernels and return "", or return the problem."""
    return foreign.add_all(extension)


GROUPS: Mapping[str, Callable[[Extension], str]] = {
    passes.ENTRY_POINTS: _pass_problem,
    targets.ENTRY_POINTS: _target_problem,
    operators.ENTRY_POINTS: _operators_problem,
    LOWERINGS: _lowerings_problem,
    foreign.ENTRY_POINTS: _kernels_problem,
}
"""Entry-point group to a function that returns what is wrong with a loaded object, or ""."""

NAMED = (passes.ENTRY_POINTS, targets.ENTRY_POINTS)
"""Groups whose entry-point names users write, so a name may occur only once."""
