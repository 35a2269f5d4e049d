"""Emit: the selected graph as one ``.onnx`` file."""

from __future__ import annotations

from smelt.errors import ErrorList
from smelt.frontends.onnx.bodies import attach_bodies
from smelt.frontends.onnx.save import ModelFiles
from smelt.program.legality import no_kernel
from smelt.targets.base import Artifact, Plan, Runner

NOT_EXPRESSED = "ONNX has no operator for it, and no function body that computes it"


def write_model(plan: Plan[None, None]) -> Artifact:
    """``NAME.onnx``, and its weights beside it beyond 1.5 GB; the option ``name`` changes NAME.

    Raises an ErrorList of Unsupported E201 for extension operators that ONNX cannot express.
    """
    model = plan.model
    lacking = attach_bodies(model)
    if lacking:
        names = ((f"{node.domain}.{node.op_type}", f"node {node.name!r}") for node in lacking)
        raise ErrorList(no_kernel("onnx", *name, NOT_EXPRESSED) for name in names)
    files = ModelFiles(model, f"{plan.options.name}.onnx")
    plan.facts["bytes"] = files.size

    def load() -> Runner:
        from smelt.runtime.runner import open_runner

        return open_runner(model)

    return Artifact("onnx", model, files, plan, dict(plan.facts), load)
