"""``smelt targets``: list every installed target and its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smelt.cli.command import Json, command, print_json
from smelt.cli.layout import table
from smelt.errors import UsageError

if TYPE_CHECKING:
    from smelt.targets.base import Target


@command
def targets(as_json: Json = False) -> None:
    """List the installed targets and their limits.

    Example: smelt targets
    """
    from smelt.targets.registry import find_target, target_names

    listed: list[dict[str, Any]] = []
    for name in target_names():
        try:
            listed.append(describe(find_target(name)))
        except UsageError as error:
            reason = " ".join(filter(None, ("cannot be loaded:", *error.at, error.why)))
            listed.append({"name": name, "error": reason})
    if as_json:
        print_json({"schema": "smelt.targets/1", "targets": listed})
        return
    print(table([_row(facts) for facts in listed], ("target", "dynamic", "operators", "summary")))


def _row(facts: dict[str, Any]) -> tuple[str, str, str, str]:
    """Return a row of the table: name, support of symbolic dims, number of operators, summary."""
    if "error" in facts:
        return facts["name"], "?", "?", facts["error"]
    dynamic = "yes" if facts["dynamic_dims"] else "no"
    if dynamic == "no" and facts["bounded_dims"]:
        dynamic = "bounded"
    return facts["name"], dynamic, str(facts["operators"] or "all"), facts["summary"]


def describe(target: Target) -> dict[str, Any]:
    """Return a target as plain data; ``operators`` and ``dtypes`` are None where all are
    allowed."""
    limits = target.limits
    operators = limits.operators if limits.operators is not None else target.kernels
    dtypes = sorted(dtype.name.lower() for dtype in limits.dtypes or ())
    return {
        "name": target.name,
        "summary": target.summary,
        "dynamic_dims": limits.dynamic_dims,
        "bounded_dims": limits.bounded_dims,
        "dtypes": dtypes if limits.dtypes is not None else None,
        "opset": list(limits.opset),
        "operators": len(operators) if operators is not None else None,
        "own_operators": [operator.name for operator in target.operators],
    }
