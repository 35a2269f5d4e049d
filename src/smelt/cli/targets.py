"""``smelt targets``: every installed target and its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smelt.cli.command import Json, command, print_json, table

if TYPE_CHECKING:
    from smelt.targets.base import Target


@command
def targets(as_json: Json = False) -> None:
    """List the installed targets and what they take."""
    from smelt.targets.registry import find_target, target_names

    listed = [describe(find_target(name)) for name in target_names()]
    if as_json:
        print_json({"schema": "smelt.targets/1", "targets": listed})
        return
    rows = [
        (t["name"], "yes" if t["dynamic_dims"] else "no", t["operators"] or "all", t["summary"])
        for t in listed
    ]
    print(table([tuple(map(str, row)) for row in rows], ("target", "dynamic", "ops", "summary")))


def describe(target: Target) -> dict[str, Any]:
    """A target as plain data; ``operators`` and ``dtypes`` are None where all are taken."""
    limits = target.limits
    dtypes = sorted(dtype.name.lower() for dtype in limits.dtypes or ())
    return {
        "name": target.name,
        "summary": target.summary,
        "dynamic_dims": limits.dynamic_dims,
        "dtypes": dtypes if limits.dtypes is not None else None,
        "opset": list(limits.opset),
        "operators": len(limits.operators) if limits.operators is not None else None,
        "own_operators": [operator.name for operator in target.operators],
    }
