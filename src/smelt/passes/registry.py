"""The registry of all passes: those in the folders of this package and those of other packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import EntryPoint

from smelt.errors import UsageError, did_you_mean
from smelt.extensions import points, warn_left_out, without_plugins
from smelt.passes.base import Pass
from smelt.registry import Owner, Registry, modules_in, named_by, owner_of_point
from smelt.spans import span

FOLDERS = (
    "canonicalize",
    "simplify",
    "control_flow",
    "activation",
    "attention",
    "convolution",
    "norms",
    "products",
    "recurrence",
    "tensors",
    "functions",
    "layout",
    "quantize",
    "precision",
    "interface",
    "cleanup",
)
"""The folders that hold passes, in the order in which lists show them."""

ENTRY_POINTS = "smelt.passes"


def own_passes() -> Iterator[tuple[str, Pass]]:
    """Yield each pass of this package with its module; module and pass have the same name."""
    for folder in FOLDERS:
        for module in modules_in(f"smelt.passes.{folder}"):
            pass_ = getattr(module, module.__name__.rpartition(".")[2], None)
            if isinstance(pass_, Pass):
                yield module.__name__, pass_


def _fill() -> None:
    """Add all passes to ``PASSES``; passes of other packages are imported at their first use."""
    with span("import passes"):
        for place, pass_ in own_passes():
            PASSES.add(pass_.name, pass_, Owner(place))
    for point in points(ENTRY_POINTS):
        name = point.name.replace("-", "_")
        PASSES.add_late(name, partial(_installed, point, name), owner_of_point(point))


def _installed(point: EntryPoint, name: str) -> Pass:
    """Load a pass from an entry point and give it the name of the entry point."""
    return replace(named_by(point, Pass, "pass"), name=name)


PASSES: Registry[str, Pass] = Registry(
    "E605", lambda name: f"passes are called {name.replace('_', '-')!r}", _fill
)


def passes() -> Mapping[str, Pass]:
    """Return all usable passes by name, ours first; raises UsageError E605 if two share a name.

    A pass of another package has the name of its entry point; passes that cannot be loaded are
    skipped.
    """
    missing = unloadable_passes()
    return {name: PASSES[name] for name in PASSES if name not in missing}


def installed() -> Mapping[str, Pass]:
    """Return the passes of other installed packages, by name."""
    return {name: pass_ for name, pass_ in passes().items() if PASSES.owner(name).package}


def unloadable_passes() -> Mapping[str, str]:
    """Return, by name, why passes of installed packages cannot be loaded; warns of each."""
    reasons = {}
    for name in PASSES:
        try:
            PASSES[name]
        except UsageError as error:
            reasons[name] = f"package {PASSES.owner(name).package}: {error.why}"
            warn_left_out(name, PASSES.owner(name).package, error.why)
    return reasons


ALIASES: Mapping[str, str] = {
    "constant_folding": "const_elimination",
    "cse": "remove_redundant_ops",
    "dce": "dead_code_elimination",
}
"""Names of passes in other compilers, and our passes of the same purpose."""


def find_pass(name: str) -> Pass:
    """Return the pass called ``name``, written with hyphens or underscores, or an alias.

    Raises UsageError E601 for an unknown name, E615 for an installed pass that cannot be loaded.
    """
    python_name = name.replace("-", "_")
    python_name = ALIASES.get(python_name, python_name)
    if python_name in PASSES:
        return PASSES[python_name]
    raise UsageError(
        "E601",
        f"there is no pass {name!r}",
        why="plug-ins are left out (--no-plugins)"
        if without_plugins()
        else "neither smelt nor an installed package has it",
        fix=did_you_mean(
            name.replace("_", "-"),
            [known.replace("_", "-") for known in (*PASSES, *ALIASES)],
            "`smelt passes` lists all",
        ),
    )
