"""Bind symbolic dims to fixed sizes: ``materialize-symbolic-dims{dims=B=1,S=128}``.

    before   x: float[B,4] ─> Relu ─> y: float[B,4]
    after    x: float[1,4] ─> Relu ─> y: float[1,4]

Needs    a positive size, or 0, for each symbol named; expressions such as 2*B follow.
Keeps    symbols that are not named. It changes the interface, so only by request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir import scope
from smelt.ir.interface_change import DimBound
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, PassContext, graph_pass


@dataclass(frozen=True)
class Sizes:
    """``dims``: bindings such as ``B=1``."""

    dims: tuple[str, ...] = ()


@graph_pass(
    "materialize_symbolic_dims",
    __doc__,
    exactness=EXACT,
    default=False,
    options_type=Sizes,
    source="Core ML MIL: common::materialize_symbolic_shape_program",
)
def materialize_symbolic_dims(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Sizes
) -> None:
    sizes = _parse(options.dims)
    _check_known(cx.model, sizes)
    interface = {*cx.model.graph.inputs, *cx.model.graph.outputs}
    changed = 0
    for value in _values(cx.model):
        bound = _bind(value.shape, sizes)
        if bound is not None:
            value.shape = bound
            changed += value in interface
    if changed:
        stats.fired["dim bound"] += changed
        stats.interface += [DimBound(name, size) for name, size in sizes.items()]
        rewriter.count += changed
        cx.shapes.redeclare_interface()
        cx.shapes.infer_model()


def _parse(dims: tuple[str, ...]) -> dict[str, int]:
    sizes = {}
    for item in dims:
        name, _, size = item.partition("=")
        if not name or not size.isdigit():
            raise UsageError(
                "E603",
                f"materialize-symbolic-dims cannot take {item!r}",
                why="a binding is NAME=SIZE with a size of 0 or more",
            )
        sizes[name] = int(size)
    return sizes


def _check_known(model: ir.Model, sizes: Mapping[str, int]) -> None:
    known: dict[str, None] = {}
    for value in model.graph.inputs:
        for dim in value.shape.dims if value.shape is not None else ():
            if not isinstance(dim, int) and dim.value is not None:
                known.update(dict.fromkeys(sorted(dim.free_symbols())))
    for name in sizes:
        if name not in known:
            raise UsageError(
                "E603",
                f"no input has a dim called {name!r}",
                why=f"the symbolic dims are {', '.join(known) or 'none'}",
            )


def _values(model: ir.Model) -> Iterator[ir.Value]:
    for graph in scope.graphs(model):
        yield from graph.inputs
        for node in graph:
            yield from node.outputs


def _bind(shape: ir.Shape | None, sizes: Mapping[str, int]) -> ir.Shape | None:
    """``shape`` with the symbols bound; None if it has none of them."""
    if shape is None or not any(
        not isinstance(dim, int) and dim.value is not None and dim.free_symbols() & sizes.keys()
        for dim in shape.dims
    ):
        return None
    return ir.Shape(
        [dim if isinstance(dim, int) or dim.value is None else dim.evaluate(sizes) for dim in shape]
    )
