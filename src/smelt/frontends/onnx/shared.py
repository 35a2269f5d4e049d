"""Save several models with one file of weights, in which equal weights of all models stand once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx_ir as ir

from smelt.errors import UsageError
from smelt.frontends.onnx.data_file import DataFile
from smelt.frontends.onnx.encode import SMALL, encode
from smelt.frontends.onnx.load import load
from smelt.frontends.onnx.read import Source
from smelt.frontends.onnx.save import prepared
from smelt.ir import scope
from smelt.ir.collector import paused_collector
from smelt.ir.files import Content, destination, write_together
from smelt.ir.out_of_memory import explains_memory
from smelt.ir.tensors.equal_tensors import EqualTensors
from smelt.operators.onnxruntime.without_kernel import warn_without_kernel
from smelt.spans import span

DATA = "model.onnx_data"
"""The name of the file of weights, as optimum calls it."""


@explains_memory("save_shared")
@paused_collector()
def save_shared(
    models: Mapping[str, Source], folder: str | Path, *, data: str = DATA
) -> tuple[Path, ...]:
    """Write models into ``folder``, with the weights of all in one file ``data``.

    Equal weights are stored once: of several models, such as an encoder and a decoder with one
    embedding, and of one. Weights are equal if they have the same element type, dims and bytes.
    Weights of fewer than 256 bytes stay in their models. The folder is created if its parent
    exists. All files are complete before the first is renamed, so existing files survive a failure.

    Returns the paths of the models, then that of the weights. Raises UsageError E669 if ``data`` is
    the name of a model, and E614 if the folder cannot be made.

    ::

        smelt.save_shared({"encoder.onnx": encoder, "decoder.onnx": "old/decoder.onnx"}, "out")
    """
    target_folder = _folder(folder)
    names = [*models, data]
    names_with_folder = {name for name in names if Path(name).name != name or name in ("", "..")}
    wrong = [name for name in names if name in names_with_folder or names.count(name) > 1]
    if wrong:
        raise UsageError(
            "E669",
            f"{wrong[0]!r} cannot be a file in the folder",
            why="models and weights are files of different names in one folder",
            fix="name each model without a folder, such as decoder.onnx",
        )
    with span("save", file=str(target_folder)):
        copies = {name: _writable_copy(source) for name, source in models.items()}
        file = DataFile(
            data, EqualTensors(tensor for model in copies.values() for tensor in _large(model))
        )
        encoded = {name: encode(model, file) for name, model in copies.items()}
        contents: dict[Path, Content] = {
            target_folder / name: item.write for name, item in encoded.items()
        }
        target_folder.mkdir(exist_ok=True)
        return tuple(write_together({**contents, target_folder / data: file.write}))


def _folder(path: str | Path) -> Path:
    """Return ``path``; raises UsageError E614 if it is a file, or its parent does not exist."""
    folder = destination(path)
    if (folder.exists() and not folder.is_dir()) or not folder.absolute().parent.is_dir():
        is_file = folder.exists()
        raise UsageError(
            "E614",
            f"cannot write to {str(folder)!r}",
            why="it is a file" if is_file else "its parent folder does not exist",
            fix="name a folder: -o out" if is_file else "create the parent folder first",
        )
    return folder


def _writable_copy(source: Source) -> ir.Model:
    """Return a copy of ``source`` with ONNX operators only; warns of missing kernels."""
    model = source if isinstance(source, ir.Model) else load(source, as_is=True)
    spent = model is not source
    copy = prepared(model, with_provenance=False, keep_bare=False, functions=False, spent=spent)
    warn_without_kernel(copy, stacklevel=6)
    return copy


def _large(model: ir.Model) -> list[ir.TensorProtocol]:
    """Return the weights of ``model`` that become external data."""
    weights = (v.const_value for graph in scope.graphs(model) for v in graph.initializers.values())
    return [weight for weight in weights if weight is not None and weight.nbytes >= SMALL]
