"""Save a model: write protobuf and weights to temporary files, then rename them.

Weights that came as external data are saved as external data; others stay inside up to
``INLINE_LIMIT`` bytes, because a protobuf holds at most 2 GiB.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import onnx
import onnx_ir as ir

from smelt.errors import UsageError
from smelt.frontends.onnx.bodies import refuse_bare, write_bodies
from smelt.frontends.onnx.data_file import DataFile
from smelt.frontends.onnx.encode import SMALL, Encoded, check_size, encode
from smelt.frontends.onnx.load import load
from smelt.frontends.onnx.map_types import proto_of
from smelt.frontends.onnx.mapped import HAD_EXTERNAL_DATA
from smelt.frontends.onnx.read import Source
from smelt.ir import provenance as origins
from smelt.ir import scope
from smelt.ir.cloning import clone_model
from smelt.ir.collector import paused_collector
from smelt.ir.defaults import restore_defaults
from smelt.ir.files import Content, destination, write_together
from smelt.ir.names import name_values
from smelt.ir.opsets.versions import lowest_ir_version
from smelt.ir.out_of_memory import explains_memory
from smelt.ir.shapes.ruled_out import refuse_ruled_out
from smelt.ir.tensors.chunks import as_transposed
from smelt.ir.tensors.missing_weights import refuse_missing_weights
from smelt.operators.onnxruntime.without_kernel import warn_without_kernel
from smelt.spans import span

INLINE_LIMIT = 1_500_000_000
"""More bytes of weights become external data: a protobuf holds 2 GiB."""


@explains_memory("to_proto")
@paused_collector()
def to_proto(
    model: Source,
    *,
    provenance_in_metadata: bool = False,
    keep_bare: bool = False,
    functions: bool = False,
    spent: bool = False,
) -> onnx.ModelProto:
    """Return the model as protobuf with its weights; the model is unchanged unless it is ``spent``.

    Copying takes a third of the time; ``spent`` avoids the copy if you no longer need the model.
    Operators beyond ONNX become standard operators in line; ``functions`` writes them as
    model-local functions, which ``load`` turns back into operators. ``keep_bare`` also writes
    operators without a body, and then only smelt can load the result.

    Raises ResourceLimit E504 if the weights do not fit into a protobuf, Unsupported E203 for
    operators without a body, and InvalidModel E301 if ``model`` is not a model.
    """
    if not isinstance(model, ir.Model):
        model, spent = load(model, as_is=True), True
    check_size(scope.weight_bytes(model))
    copy = prepared(model, provenance_in_metadata, keep_bare, functions, spent)
    for graph in copy.graphs():
        for value in graph.initializers.values():
            if isinstance(value.const_value, ir.ExternalTensor):
                tensor = value.const_value
                value.const_value = ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=value.name)
            elif value.const_value is not None:
                value.const_value = as_transposed(value.const_value)
    return proto_of(copy)


@explains_memory("save")
@paused_collector()
def save(
    model: Source,
    path: str | Path,
    *,
    provenance: bool = False,
    external_data: bool | None = None,
    inline_limit: int = INLINE_LIMIT,
    keep_bare: bool = False,
    functions: bool = False,
) -> Path:
    """Write ``model`` to ``path``, and return the path. Other sources are loaded as ``load`` does.

    Operators beyond ONNX become standard operators in line, so any runtime can load the file; an
    operator without a body raises Unsupported E203, unless ``keep_bare`` writes it for smelt alone.
    ``functions`` writes such operators as model-local functions instead: ``load`` turns them back
    into operators, for which the targets ``c`` and ``host`` have kernels. Warns of operators for
    which ONNX Runtime has no kernel, such as those of bfloat16.

    ``external_data`` writes weights to ``NAME.data`` beside the model. By default weights go where
    they came from: to external data if they came from there, else into the model up to
    ``inline_limit`` bytes in total. In either form they are written one after the other and never
    held together.

    ``provenance`` writes the origin of each node into its metadata. Existing files survive any
    failure: both files are complete before either is renamed. Raises ResourceLimit E505 if the disk
    is full.
    """
    path = destination(path)
    with span("save", file=str(path)):
        _check_folder(path)
        if not isinstance(model, ir.Model):
            model = load(model, as_is=True)
        if external_data is None:
            external_data = _needs_data_file(model, inline_limit)
        data = DataFile(f"{path.name}.data") if external_data else None
        copy = prepared(model, provenance, keep_bare, functions)
        if not keep_bare:
            warn_without_kernel(copy, stacklevel=4)
        encoded = encode(copy, data)
        contents: dict[Path, Content] = {}
        if data is not None and data.placed:
            contents[path.parent / data.location] = data.write
        contents[path] = encoded.write
        write_together(contents)
        return path


def _check_folder(path: Path) -> None:
    """Raise UsageError E614 if ``path`` is a folder, or lies in a folder that does not exist."""
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(
            "E614",
            f"cannot write to {str(path)!r}",
            why="the path is a folder" if path.is_dir() else "the folder does not exist",
            fix="create the folder first, or choose another path",
        )


@explains_memory("save")
@paused_collector()
def write(
    model: ir.Model, stream: BinaryIO, *, keep_bare: bool = False, functions: bool = False
) -> None:
    """Write ``model`` with its weights inside to a stream, piece by piece.

    The options are those of ``save``.
    """
    with span("save"):
        copy = prepared(model, with_provenance=False, keep_bare=keep_bare, functions=functions)
        if not keep_bare:
            warn_without_kernel(copy, stacklevel=4)
        encode(copy).write(stream)


class ModelFiles(Mapping[str, bytes]):
    """The files that ``save`` writes for ``name``: one, or two with external data.

    Weights of at least ``smallest`` bytes become external data if all weights together exceed
    ``inline_limit``. Bytes are built on access; ``contents`` writes them without holding them.
    """

    def __init__(
        self,
        model: ir.Model,
        name: str,
        *,
        inline_limit: int = INLINE_LIMIT,
        smallest: int = SMALL,
        keep_bare: bool = False,
        functions: bool = False,
    ) -> None:
        """Encode ``model`` as ``name``.

        ``contents`` has a function for each file, which writes the file to a stream.
        """
        self._data = DataFile(f"{name}.data")
        ready = prepared(model, with_provenance=False, keep_bare=keep_bare, functions=functions)
        file = self._data if _needs_data_file(model, inline_limit) else None
        self._encoded: Encoded = encode(ready, file, smallest)
        self.contents: dict[str, Content] = {}
        if self._data.placed:
            self.contents[self._data.location] = self._data.write
        self.contents[name] = self._encoded.write

    @property
    def size(self) -> int:
        """The size of all files in bytes."""
        return self._encoded.size + self._data.size

    def __getitem__(self, name: str) -> bytes:
        """Return the bytes of the file ``name``."""
        stream = io.BytesIO()
        write_to = self.contents[name]
        assert callable(write_to)
        write_to(stream)
        return stream.getvalue()

    def __iter__(self) -> Iterator[str]:
        return iter(self.contents)

    def __len__(self) -> int:
        return len(self.contents)


def _needs_data_file(model: ir.Model, inline_limit: int) -> bool:
    """True if the weights came as external data, or exceed ``inline_limit`` bytes."""
    return bool(model.graph.meta.get(HAD_EXTERNAL_DATA)) or scope.weight_bytes(model) > inline_limit


def prepared(
    model: ir.Model,
    with_provenance: bool,
    keep_bare: bool,
    functions: bool,
    spent: bool = False,
) -> ir.Model:
    """Return a copy of ``model``, or itself if it is ``spent``, ready to be written to a file."""
    refuse_missing_weights(model, "saved")
    refuse_ruled_out(model)
    copy = model if spent else clone_model(model)
    bare = write_bodies(copy, functions=functions or keep_bare)
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
    """Drop the shapes of values of unknown type.

    A file cannot hold them, and onnx_ir would log each.
    """
    for graph in scope.graphs(model):
        for value in (*graph.inputs, *(value for node in graph for value in node.outputs)):
            if value.type is None:
                value.shape = None
