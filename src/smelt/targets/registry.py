"""Every installed target by name, from the entry point group ``smelt.targets``."""

from __future__ import annotations

from functools import partial
from importlib.metadata import EntryPoint

from smelt import operators
from smelt.errors import UsageError, did_you_mean
from smelt.extensions import package_of, points, without_plugins
from smelt.registry import Registry, named_by, owner_of_point
from smelt.spans import span
from smelt.targets.base import Target

ENTRY_POINTS = "smelt.targets"


def _fill() -> None:
    """Register the targets of all installed packages, without importing them."""
    clashes: dict[str, UsageError] = {}
    for point in points(ENTRY_POINTS):
        try:
            TARGETS.add_late(point.name, partial(_named_target, point), owner_of_point(point))
        except UsageError as clash:
            clashes[point.name] = clash
    for name, error in clashes.items():
        TARGETS.add_error(name, error)  # a clash affects only targets of this name


def _named_target(point: EntryPoint) -> Target:
    """Load the target of ``point``; raises UsageError E615 if it has another name."""
    target = named_by(point, Target, "target")
    if target.name != point.name:
        raise UsageError(
            "E615",
            f"the target {point.name!r} cannot be loaded",
            at=f"package {package_of(point)}",
            why=f"{point.value} is called {target.name!r}",
            fix="give the entry point the name of the target",
        )
    return target


TARGETS: Registry[str, Target] = Registry(
    "E610", lambda name: f"targets are called {name!r}", _fill
)


def target_names() -> tuple[str, ...]:
    """Return the names of all targets, sorted; imports none of them."""
    return tuple(sorted(TARGETS))


def find_target(target: str | Target) -> Target:
    """Return the target called ``target``, or ``target`` itself; raises UsageError E611.

    Its operators are registered, so that graphs after its selection can be inferred and run.
    """
    if isinstance(target, Target):
        operators.register(*target.operators)
        return target
    if not isinstance(target, str) or target not in TARGETS:
        raise UsageError(
            "E611",
            f"there is no target {target!r}",
            why=f"installed are {', '.join(target_names()) or 'none'}"
            + ("; plug-ins are left out (--no-plugins)" if without_plugins() else ""),
            fix=did_you_mean(str(target), target_names(), "`smelt targets` lists all"),
        )
    with span("import target", target=target):
        loaded = TARGETS[target]
    operators.register(*loaded.operators)
    return loaded
