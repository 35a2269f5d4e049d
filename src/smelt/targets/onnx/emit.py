"""The emit phase: write the selected graph as one ``.onnx`` file."""

from __future__ import annotations

import onnx_ir as ir

from smelt.errors import ErrorList, Unsupported
from smelt.frontends.onnx.bodies import write_bodies
from smelt.frontends.onnx.save import ModelFiles
from smelt.program.legality import no_kernel
from smelt.targets.base import Artifact, Plan
from smelt.targets.runner import Runner

NOT_EXPRESSED = "ONNX has no operator for it, and no function body that computes it"
ON_HOST = "; target 'host' computes it"
"""The advice for operators of smelt's own domain."""


def _extension_error(node: ir.Node) -> Unsupported:
    """Return error E201 for an extension operator that ONNX cannot express."""
    why = NOT_EXPRESSED + (ON_HOST if node.domain == "smelt" else "")
    return no_kernel("onnx", f"{node.domain}.{node.op_type}", f"node {node.name!r}", why)


def write_model(plan: Plan[None, None]) -> Artifact:
    """Write ``NAME.onnx``, with weights in a second file beyond 1.5 GB; option ``name`` sets NAME.

    Raises an ErrorList of Unsupported E201 for extension operators that ONNX cannot express.
    """
    model = plan.model
    functions = plan.options.functions
    lacking = write_bodies(model, functions=functions)
    if lacking:
        raise ErrorList(map(_extension_error, lacking))
    files = ModelFiles(model, f"{plan.options.name}.onnx", functions=functions)
    plan.facts["bytes"] = files.size

    def load() -> Runner:
        """Return a runner of the model by ONNX Runtime."""
        from smelt.runtime.runner import open_runner

        return open_runner(model)

    return Artifact("onnx", model, files, plan, dict(plan.facts), load)
