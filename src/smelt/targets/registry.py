"""Every installed target by name, found through the entry point group ``smelt.targets``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint

from smelt import operators
from smelt.errors import UsageError, did_you_mean
from smelt.extensions import package_of, points, without_plugins
from smelt.spans import span
from smelt.targets.base import Target

ENTRY_POINTS = "smelt.targets"


@cache
def _points() -> Mapping[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for point in points(ENTRY_POINTS):
        if point.name in found and found[point.name].value != point.value:
            raise UsageError(
                "E610",
                f"two installed packages register a target {point.name!r}",
                at=(found[point.name].value, point.value),
                fix="uninstall one of them",
            )
        found[point.name] = point
    return found


def target_names() -> tuple[str, ...]:
    """The names of all targets, sorted; imports none of them."""
    return tuple(_points())


def find_target(target: str | Target) -> Target:
    """The target called ``target``, or ``target`` itself; raises UsageError E611.

    Its operators are declared from then on, so the graphs it selects can be inferred and run.
    """
    if isinstance(target, Target):
        operators.register(*target.operators)
        return target
    point = _points().get(target)
    if point is None:
        raise UsageError(
            "E611",
            f"there is no target {target!r}",
            why=f"installed are {', '.join(target_names()) or 'none'}"
            + ("; plug-ins are left out (--no-plugins)" if without_plugins() else ""),
            fix=did_you_mean(target, target_names(), "`smelt targets` lists all"),
        )
    try:
        with span("import target", target=target):
            loaded = point.load()
    except Exception as error:
        raise UsageError(
            "E615",
            f"the target {target!r} cannot be loaded",
            at=f"package {package_of(point)}",
            why=f"{type(error).__name__}: {error}",
            fix="upgrade or uninstall the package",
        ) from error
    if not isinstance(loaded, Target):
        raise UsageError("E612", f"target {target!r} is no smelt Target", at=point.value)
    operators.register(*loaded.operators)
    return loaded
