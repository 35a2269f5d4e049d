"""Emit: the selected graph as one ``.onnx`` file."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.errors import ErrorList, Unsupported
from smelt.frontends.onnx.bodies import attach_bodies
from smelt.frontends.onnx.save import ModelFiles
from smelt.targets.base import Artifact, Plan, Runner


def _check_expressible(nodes: Sequence[ir.Node]) -> None:
    """Raise an ErrorList of E201 for extension operators that ONNX cannot express."""
    if nodes:
        raise ErrorList(
            Unsupported(
                "E201",
                f"operator {node.domain}.{node.op_type} has no kernel on target 'onnx'",
                at=f"node {node.name!r}",
                why="ONNX has no operator for it, and no function body that computes it",
                fix="compile for a target that has it, such as host",
            )
            for node in nodes
        )


def write_model(plan: Plan[None, None]) -> Artifact:
    """``NAME.onnx``, and its weights beside it beyond 1.5 GB; the option ``name`` changes NAME."""
    model = plan.model
    _check_expressible(attach_bodies(model))
    files = ModelFiles(model, f"{plan.options.name}.onnx")
    plan.facts["bytes"] = files.size

    def load() -> Runner:
        from smelt.runtime.runner import open_runner

        return open_runner(model)

    return Artifact("onnx", model, files, plan, dict(plan.facts), load)
