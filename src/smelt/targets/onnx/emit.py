"""Emit: the selected graph as one ``.onnx`` file."""

from __future__ import annotations

from smelt.frontends.onnx import to_proto
from smelt.operators import attach_functions
from smelt.targets.base import Artifact, Plan, Runner

DEFAULT_NAME = "model"


def write_model(plan: Plan) -> Artifact:
    """One file, ``NAME.onnx``; the option ``name`` changes NAME."""
    model = plan.model
    attach_functions(model)
    data = to_proto(model).SerializeToString(deterministic=True)
    plan.facts["bytes"] = len(data)
    name = f"{plan.options.get('name', DEFAULT_NAME)}.onnx"

    def load() -> Runner:
        from smelt.runtime.runner import open_runner

        return open_runner(model)

    return Artifact("onnx", model, {name: data}, plan, dict(plan.facts), load)
