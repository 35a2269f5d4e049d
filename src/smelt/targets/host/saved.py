"""Open a folder that this target wrote: lower its model and plan its memory on this machine."""

from __future__ import annotations

from pathlib import Path

from smelt.runtime.input_ranges import index_range
from smelt.runtime.interface import interface_of
from smelt.targets.base import Plan
from smelt.targets.host.files import read_folder
from smelt.targets.host.phases import HostPlan, plan_arena, plan_steps, runner_of
from smelt.targets.runner import Runner
from smelt.targets.saved_folder import Saved


def open_folder(folder: Path) -> Saved | None:
    """Return the saved program in ``folder``; None for a folder of another target.

    Its interface is known at once; the model is lowered when the program is loaded.
    Raises UsageError E616 if a file is missing, and the errors of loading a model.
    """
    read = read_folder(folder)
    if read is None:
        return None
    model, options = read
    interface = interface_of(model)
    limits = {value.name or "": index_range(value, {}) for value in model.graph.inputs}
    ranges = {name: limit for name, limit in limits.items() if limit is not None}

    def load() -> Runner:
        """Return a runner of the saved model."""
        plan: HostPlan = Plan(model, options)
        plan_steps(plan)
        plan_arena(plan)
        return runner_of(plan)

    return Saved("host", interface, load, ranges=ranges)
