"""Compile the model of a session, and describe its inputs and outputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smelt.errors import ErrorList, Unsupported, UsageError
from smelt.sessions.options import ENGINE, GraphOptimizationLevel, SessionOptions
from smelt.sessions.ports import Description, ModelMetadata, SessionPort

if TYPE_CHECKING:
    import onnx_ir as ir

    from smelt.runtime.interface import Interface
    from smelt.targets.base import Artifact
    from smelt.targets.saved_folder import Saved


@dataclass(frozen=True)
class CompiledModel:
    """A model that runs: ``run`` takes one value per input, or None, and returns all outputs.

    ``check_feeds`` raises UsageError E632 if values by name do not fit the inputs. ``ready`` is
    ``Artifact.ready``. ``files`` are the files of external data that hold its weights.
    """

    description: Description
    run: Callable[..., Sequence[Any]]
    check_feeds: Callable[[Mapping[str, Any]], None]
    ready: Callable[[float | None], bool]
    files: Sequence[Path] = ()


def compile_for_session(
    source: str | bytes | os.PathLike[str], options: SessionOptions
) -> CompiledModel:
    """Return the model of ``source`` as a program of this machine.

    ``source`` is an ONNX file, its bytes, or the folder of a saved artifact. Raises what
    ``smelt.load`` and ``smelt.compile`` raise, UsageError E663 for options that do not fit.
    """
    if not isinstance(source, bytes) and Path(source).is_dir():
        from smelt.targets.saved import open_saved

        saved = open_saved(Path(source))
        return _described(saved.interface, ModelMetadata(), saved, ())
    from smelt.frontends.onnx import load
    from smelt.frontends.onnx.mapped import WEIGHT_FILES
    from smelt.passes.interface.materialize_symbolic_dims import bind_dims
    from smelt.runtime.interface import interface_of
    from smelt.sessions.interim import InterimSession, may_run_interim, source_identity
    from smelt.targets.host.runner import HostRunner

    model_source = source if isinstance(source, bytes) else Path(source)
    identity = source_identity(model_source)
    model = load(model_source, keep_opset=True)
    files = model.graph.meta.get(WEIGHT_FILES, ())
    bind_dims(model, options.dims)
    _replace_initializers(model, options)
    metadata, interface = ModelMetadata.of(model), interface_of(model)
    has_interim = may_run_interim(model, options)
    artifact = _compile(model, options)
    if options.optimized_model_filepath:
        from smelt.frontends.onnx import save

        save(artifact.model, options.optimized_model_filepath)
    described = _described(interface, metadata, artifact, files)
    if has_interim and isinstance(described.run, HostRunner):
        names = [port.name for port in interface.inputs]
        described.run.interim = InterimSession(model_source, names, options.threads, identity)
    return described


def _compile(model: ir.Model, options: SessionOptions) -> Artifact:
    """Return ``model`` compiled for ``host``; nodes that it does not support run in ONNX Runtime.

    Raises the errors of ``host`` if ONNX Runtime is not installed.
    """
    from smelt.compiler import compile_model

    level = options.graph_optimization_level
    pipeline = "" if level is GraphOptimizationLevel.ORT_DISABLE_ALL else "default"
    host: dict[str, Any] = {"threads": options.threads}
    if ENGINE in options.entries:
        host["engine"] = options.entries[ENGINE]
    try:
        return compile_model(model, target="host", pipeline=pipeline, **host)
    except (Unsupported, ErrorList):
        if find_spec("onnxruntime") is None:
            raise
    try:
        return compile_model(model, target="host", fallback="ort", pipeline=pipeline, **host)
    except (Unsupported, ErrorList):
        return compile_model(model, target="ort", pipeline=pipeline)


def _replace_initializers(model: ir.Model, options: SessionOptions) -> None:
    """Give initializers the values of the options; UsageError E663 for names of no initializer."""
    import onnx_ir as ir

    for name, value in options.initializers.items():
        initializer = model.graph.initializers.get(name)
        if initializer is None:
            raise UsageError(
                "E663",
                f"the model has no initializer {name!r}",
                why="the session options give a value for it",
                fix="name an initializer of the model",
            )
        tensor = ir.tensor(value.numpy(), name=name)
        known = initializer.const_value
        if known is not None and (known.dtype, known.shape) != (tensor.dtype, tensor.shape):
            raise UsageError(
                "E663",
                f"the new value of initializer {name!r} has another type or shape",
                why=f"the model has {known.dtype.name.lower()}{list(known.shape.numpy())}",
                fix="give a value of the same type and shape",
            )
        initializer.const_value = tensor


def _described(
    interface: Interface,
    metadata: ModelMetadata,
    artifact: Artifact | Saved,
    files: Sequence[Path],
) -> CompiledModel:
    """Return ``artifact`` as a CompiledModel: opened, with a description of its interface.

    ``files`` are those of the model's external data.
    """
    from smelt.runtime.named_inputs import choose_inputs

    def check_feeds(feeds: Mapping[str, Any]) -> None:
        """Raise UsageError E632 for all values that do not fit the inputs, together."""
        choose_inputs(interface, feeds, make=None)

    description = Description(
        [SessionPort.of(port) for port in interface.inputs],
        [SessionPort.of(port) for port in interface.outputs],
        metadata,
    )
    return CompiledModel(description, artifact.opened(), check_feeds, artifact.ready, files)
