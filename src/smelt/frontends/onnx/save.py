"""Save: protobuf and weights, each by a temporary file and a rename."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
import onnx_ir as ir

from smelt.errors import ResourceLimit, UsageError
from smelt.frontends.onnx.bodies import attach_bodies, refuse_bare
from smelt.frontends.onnx.checks.versions import lowest_ir_version
from smelt.ir import provenance as origins
from smelt.ir import scope
from smelt.ir.collector import paused_collector
from smelt.ir.defaults import restore_defaults
from smelt.ir.files import write_atomically
from smelt.ir.names import name_values

INLINE_LIMIT = 1_500_000_000
"""Bytes of weights beyond which they go to a file of their own: a protobuf holds 2 GiB."""


@paused_collector()
def to_proto(
    model: ir.Model, *, provenance_in_metadata: bool = False, keep_bare: bool = False
) -> onnx.ModelProto:
    """The model as protobuf, weights included; the model stays as it is.

    Operators beyond ONNX bring their bodies. ``keep_bare`` writes those that have none, too; only
    smelt can load such a model. Raises ResourceLimit E504 if the weights do not fit into one,
    Unsupported E203 for operators without a body.
    """
    size = _weight_bytes(model)
    if size > INLINE_LIMIT:
        raise ResourceLimit(
            "E504",
            f"the weights take {size:,} bytes; a protobuf holds at most 2 GiB",
            fix="save it to a file: weights then go beside it",
        )
    copy = _prepared(model, provenance_in_metadata, keep_bare)
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
    inline_limit: int = INLINE_LIMIT,
    keep_bare: bool = False,
) -> Path:
    """Write ``model`` to ``path``; returns the path.

    Operators beyond ONNX bring their bodies, so any runtime loads the file; for those that have
    none it raises Unsupported E203. ``keep_bare`` writes them all the same, for smelt alone.

    ``external_data`` puts weights into ``NAME.data`` beside it; by default only when they exceed
    ``inline_limit`` bytes. ``provenance`` writes the origin of each node into its metadata. A file
    that stood there survives any failure: both files are complete before either appears.
    """
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError("E614", f"cannot write to {str(path)!r}", why="no such folder")
    if external_data is None:
        external_data = _weight_bytes(model) > inline_limit
    if not external_data:
        proto = to_proto(model, provenance_in_metadata=provenance, keep_bare=keep_bare)
        return write_atomically(path, proto.SerializeToString(deterministic=True))
    copy = _prepared(model, provenance, keep_bare)
    try:
        _save_with_data(copy, path)
    except OSError as error:
        what = f"cannot write {str(path)!r}: {error.strerror or error}"
        raise UsageError("E630", what) from error
    return path


def _save_with_data(model: ir.Model, path: Path) -> None:
    """Write both files into a folder of their own, and move them in place, weights first."""
    with TemporaryDirectory(dir=path.parent, prefix=".smelt-") as folder:
        ir.save(model, Path(folder, path.name), external_data=f"{path.name}.data")
        for name in (f"{path.name}.data", path.name):
            Path(folder, name).replace(path.parent / name)


def to_files(model: ir.Model, name: str, *, inline_limit: int = INLINE_LIMIT) -> dict[str, bytes]:
    """What ``save`` writes for a file ``name``: one file, or two if weights go beside it."""
    if _weight_bytes(model) <= inline_limit:
        return {name: to_proto(model).SerializeToString(deterministic=True)}
    with TemporaryDirectory(prefix="smelt-") as folder:
        save(model, Path(folder, name), external_data=True)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def _prepared(model: ir.Model, with_provenance: bool, keep_bare: bool) -> ir.Model:
    """A copy of ``model`` as it belongs into a file."""
    copy = model.clone()
    bare = attach_bodies(copy)
    if not keep_bare:
        refuse_bare(bare)
    restore_defaults(copy)
    name_values(copy)
    _drop_shapes_without_types(copy)
    copy.ir_version = max(copy.ir_version, lowest_ir_version(copy))
    copy.graph.name = copy.graph.name or "graph"
    if with_provenance:
        origins.write_to_metadata(scope.nodes(copy))
    return copy


def _drop_shapes_without_types(model: ir.Model) -> None:
    """A file has no place for the shape of a value of unknown type; onnx_ir logs each."""
    for graph in scope.graphs(model):
        for value in (*graph.inputs, *(value for node in graph for value in node.outputs)):
            if value.type is None:
                value.shape = None


def _weight_bytes(model: ir.Model) -> int:
    return sum(
        value.const_value.nbytes
        for graph in scope.graphs(model)
        for value in graph.initializers.values()
        if value.const_value is not None
    )
