"""Open a model for running: in ONNX Runtime, or in the reference evaluator if it has no kernel.

ONNX Runtime runs on one thread with graph optimizations off, so that results belong to the model
itself. ``optimized=True`` turns them on, for measuring latency.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import onnx_ir as ir

from smelt.errors import Unsupported
from smelt.runtime.interface import Interface, Value

if TYPE_CHECKING:
    import onnx

Source: TypeAlias = "ir.Model | onnx.ModelProto | bytes | str | Path"
RunnerName = Literal["auto", "onnxruntime", "reference"]


class Runner(Protocol):
    """A model that is ready to run.

    A call takes one value for each input, in order; None stands for the input's default. It returns
    one value for each output.
    """

    name: str
    interface: Interface

    def __call__(self, *inputs: Value) -> tuple[Value, ...]: ...


def as_model(source: Source) -> ir.Model:
    """Return ``source`` as an IR model; a file or protobuf is checked but not changed."""
    if isinstance(source, ir.Model):
        return source
    from smelt.frontends.onnx import load

    return load(source, as_is=True)


def open_runner(
    source: Source,
    runner: RunnerName = "auto",
    *,
    optimized: bool = False,
    consume: bool = False,
    threads: int = 1,
) -> Runner:
    """Open ``source`` for running, on ``threads`` threads of ONNX Runtime.

    With ``consume``, the model is not copied and may not be used afterwards; a model that ONNX
    Runtime cannot run then raises Unsupported, because its weights are already moved out. Raises
    UsageError E631 if onnxruntime is missing, Unsupported E220 if no runner has a kernel for an
    operator, InvalidModel E320 if the model cannot be loaded.
    """
    from smelt.runtime.onnxruntime import OnnxRuntime
    from smelt.runtime.reference import Reference

    model = as_model(source)
    if runner == "reference":
        return Reference(model, consume=consume)
    try:
        return OnnxRuntime(model, optimized=optimized, consume=consume, threads=threads)
    except Unsupported:
        if runner == "onnxruntime" or consume:
            raise
        return Reference(model)


def run(source: Source, inputs: Sequence[Value], runner: RunnerName = "auto") -> tuple[Value, ...]:
    """Run ``source`` once: one value per input in order; returns one value per output."""
    return open_runner(source, runner)(*inputs)
