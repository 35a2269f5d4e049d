"""The phases that a target adds to the passes, each in a few words of its own."""

from __future__ import annotations

import dataclasses
import inspect

from smelt.targets.base import Target


def phases(target: Target) -> dict[str, str]:
    """What ``target`` does with a model that the passes are through with, in order.

    A phase that it does not declare is left out. The words are those of its rules, and the first
    line of the documentation of its functions.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(Target)}
    found: dict[str, str] = {}
    if target.select:
        found["select"] = f"by the rules {', '.join(rule.name for rule in target.select)}"
    found["check limits"] = "refuses, all at once, what the target cannot take"
    for name in ("schedule", "allocate", "emit"):
        phase = getattr(target, name)
        if phase is not defaults[name]:
            written = inspect.getdoc(phase) or str(getattr(phase, "__name__", name))
            found[name] = written.splitlines()[0].replace("``", "`")
    return found
