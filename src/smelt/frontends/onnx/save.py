"""Save: protobuf and weights, each by a temporary file and a rename."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_ir as ir

from smelt.errors import ResourceLimit, UsageError
from smelt.ir import provenance as origins
from smelt.ir import scope
from smelt.ir.defaults import restore_defaults
from smelt.ir.files import write_atomically
from smelt.ir.names import name_values

INLINE_LIMIT = 1_500_000_000
"""Bytes of weights beyond which they go to a file of their own: a protobuf holds 2 GiB."""


def to_proto(model: ir.Model, *, provenance_in_metadata: bool = False) -> onnx.ModelProto:
    """The model as protobuf, weights included; the model stays as it is.

    Raises ResourceLimit E504 if the weights do not fit into one.
    """
    size = _weight_bytes(model)
    if size > INLINE_LIMIT:
        raise ResourceLimit(
            "E504",
            f"the weights take {size:,} bytes; a protobuf holds at most 2 GiB",
            fix="save it to a file: weights then go beside it",
        )
    copy = model.clone()
    _prepare(copy, provenance_in_metadata)
    for graph in copy.graphs():
        for value in graph.initializers.values():
            if isinstance(value.const_value, ir.ExternalTensor):
                tensor = value.const_value
                value.const_value = ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=value.name)
    return ir.to_proto(copy)


def save(
    model: ir.Model,
    path: str | Path,
    *,
    provenance: bool = False,
    external_data: bool | None = None,
) -> Path:
    """Write ``model`` to ``path``; returns the path.

    ``external_data`` puts weights into ``NAME.data`` beside it; by default only when they exceed
    1.5 GB. ``provenance`` writes the origin of each node into its metadata. A file that stood
    there survives any failure: the weights are complete before the model that names them appears.
    """
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError("E614", f"cannot write to {str(path)!r}", why="no such folder")
    external = _weight_bytes(model) > INLINE_LIMIT if external_data is None else external_data
    if not external:
        proto = to_proto(model, provenance_in_metadata=provenance)
        return write_atomically(path, proto.SerializeToString(deterministic=True))
    copy = model.clone()
    _prepare(copy, provenance)
    ir.save(copy, path, external_data=f"{path.name}.data")
    return path


def _prepare(copy: ir.Model, with_provenance: bool) -> None:
    """Make ``copy``, a clone of the model to save, what belongs into a file."""
    restore_defaults(copy)
    name_values(copy)
    if with_provenance:
        origins.write_to_metadata(scope.nodes(copy))


def _weight_bytes(model: ir.Model) -> int:
    return sum(
        value.const_value.nbytes
        for graph in scope.graphs(model)
        for value in graph.initializers.values()
        if value.const_value is not None
    )
