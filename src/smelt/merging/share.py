"""Write models with one file of weights, and compare what was written with the sources."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path

import onnx_ir as ir

from smelt.check.agreement import Dims
from smelt.check.verify import verify
from smelt.frontends.onnx.shared import save_shared
from smelt.ir import scope
from smelt.ir.tensors.equal_tensors import EqualTensors
from smelt.merging.facts import Facts
from smelt.merging.verification import own_dims


def share(
    models: Mapping[str, ir.Model],
    folder: str | Path,
    *,
    verified: bool = False,
    dims: Dims | None = None,
) -> Facts:
    """Write ``models`` as ``save_shared`` does; ``verified`` compares each file with its model.

    Raises Mismatch E702 if a file computes something else; ``dims`` may hold dims of any model.
    """
    paths = save_shared(models, folder)
    before = sum(map(scope.weight_bytes, models.values()))
    facts = Facts((before, _unique_bytes(models)))
    if verified:
        dims_of_each = own_dims(dims, list(models.values()))
        model_paths = paths[: len(models)]  # the last path is that of the weights
        for (name, model), sizes, path in zip(
            models.items(), dims_of_each, model_paths, strict=True
        ):
            report = verify(model, path, dims=sizes, names=(name, f"the written {name}"))
            report.check()
            facts.reports.append(report)
    return facts


def _unique_bytes(models: Mapping[str, ir.Model]) -> int:
    """Return the bytes of the weights of all ``models``, equal ones counted once."""
    graphs = [graph for model in models.values() for graph in scope.graphs(model)]
    weights = [value.const_value for graph in graphs for value in graph.initializers.values()]
    tensors = [tensor for tensor in weights if tensor is not None]
    equal = EqualTensors(tensors)
    sizes: dict[Hashable, int] = {equal.key(tensor): tensor.nbytes for tensor in tensors}
    return sum(sizes.values())
