"""Errors of graphs that ``torch.compile`` gives to smelt."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E116": ErrorCode(
        "a graph of PyTorch that has no ONNX form",
        "PyTorch's exporter refuses an operator of a graph that torch.compile captured. PyTorch "
        "then runs the graph, unless fallback is off, and a warning has this error.",
        "compute this part behind torch._dynamo.graph_break(), so that smelt compiles the rest",
    ),
    "E117": ErrorCode(
        "a graph of PyTorch with gradients, or on another device than the CPU",
        "The backend smelt of torch.compile computes on the CPU, without gradients. Here gradients "
        "are enabled, and a parameter or input requires them; or a tensor is on another device.",
        "with torch.no_grad(): compiled(x)",
    ),
    "E118": ErrorCode(
        "a graph of PyTorch that computes other results when it is compiled",
        "The first call of a program that torch.compile captured also runs the graph by PyTorch. "
        "The results differ by more than rounding explains, for example because PyTorch's "
        "exporter writes a BatchNorm in training mode as one for inference. PyTorch then runs the "
        "graph, unless fallback is off, and a warning has this error.",
        'model.eval() before torch.compile(model, backend="smelt")',
    ),
}
