"""Open a model for running: ONNX Runtime first, the reference evaluator where it has no kernel.

ONNX Runtime runs with its graph optimizations off, on one thread, so a result is that of the
model as it stands. ``optimized=True`` turns them on, which is for measuring latency.
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

    Call it with one value an input, in order; None stands for the default of an input that has
    one. It returns one value an output.
    """

    name: str
    interface: Interface

    def __call__(self, *inputs: Value) -> tuple[Value, ...]: ...


def as_model(source: Source) -> ir.Model:
    """``source`` as an IR model; a file or protobuf is checked, but stays as it is."""
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
    """Make ``source`` ready to run; ONNX Runtime takes so many ``threads``.

    With ``consume``, nobody else needs it: it is not copied. What ONNX Runtime cannot run is then
    Unsupported, because its weights have been taken out already.

    Raises UsageError E631 if onnxruntime is missing, Unsupported E220 if no runner has a kernel
    for some operator, InvalidModel E320 if the model cannot be loaded.
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
    """Run ``source`` once: one value an input in, one value an output out."""
    return open_runner(source, runner)(*inputs)
