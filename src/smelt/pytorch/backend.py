"""Compile the graphs that PyTorch captures from a function or module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from smelt.errors import Unsupported
from smelt.pytorch.program import Program
from smelt.pytorch.settings import Settings


def compile_graph(
    module: GraphModule,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Return a function that computes ``module`` by the target ``host``.

    PyTorch calls this for ``torch.compile(f, backend="smelt", options={...})``, once for each graph
    and each kind of ``inputs``. The fields of ``Settings`` are the options. Raises UsageError E660
    for others, and Unsupported E117 for gradients and devices other than the CPU.
    """
    settings = Settings.of(options, mode)
    _refuse_gradients(module, inputs)
    _refuse_devices(module, inputs)
    from torch._dynamo.backends.common import aot_autograd

    for constant in (*module.parameters(), *module.buffers()):
        torch._dynamo.mark_static_address(constant, guard=False)

    def compiled(graph: GraphModule, _: Sequence[Any]) -> Program:
        """Return the program of a graph of ATen operators that changes no argument."""
        return Program(graph, settings)

    function: Callable[..., Any] = aot_autograd(fw_compiler=compiled)(module, inputs)
    return function


def _refuse_gradients(module: GraphModule, inputs: Sequence[Any]) -> None:
    """Raise Unsupported E117 if the results of ``module`` would have gradients."""
    if not torch.is_grad_enabled():
        return
    wanted = sum(tensor.requires_grad for tensor in _tensors(module, inputs))
    if wanted:
        raise Unsupported(
            "E117",
            "the backend smelt of torch.compile computes no gradients",
            why=f"gradients are enabled, and {wanted} parameters or inputs require them",
            fix="call the function under torch.no_grad() or torch.inference_mode()",
        )


def _refuse_devices(module: GraphModule, inputs: Sequence[Any]) -> None:
    """Raise Unsupported E117 for tensors that are not on the CPU."""
    devices = {str(tensor.device) for tensor in _tensors(module, inputs)} - {"cpu"}
    if devices:
        raise Unsupported(
            "E117",
            f"the backend smelt of torch.compile has no device {min(devices)!r}",
            why="it computes on the CPU",
            fix="move the module and its inputs: module.cpu()",
        )


def _tensors(module: GraphModule, inputs: Sequence[Any]) -> list[torch.Tensor]:
    """Return the tensors of ``module`` and the tensors among ``inputs``."""
    given = [value for value in inputs if isinstance(value, torch.Tensor)]
    return [*module.parameters(), *module.buffers(), *given]
