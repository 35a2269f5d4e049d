"""Bind symbolic dims to fixed sizes: ``materialize-symbolic-dims{dims=B=1,S=128}``.

    before   x: float[B,4] ─> Relu ─> y: float[B,4]
    after    x: float[1,4] ─> Relu ─> y: float[1,4]

Needs    (1) a size of 0 or more for each named symbol; expressions such as 2*B are computed.
Keeps    (1) all other symbols. The pass changes the interface, so it runs on request only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir import scope
from smelt.ir.bounds import note_bounds
from smelt.ir.interface_change import DimBound
from smelt.ir.rewrite import Rewriter
from smelt.ir.symbolic_dims.dims import Place, size_of, symbols_of, unnamed_dims
from smelt.ir.symbolic_dims.empty_dims import is_never_empty
from smelt.ir.symbolic_dims.size_constraints import bind_constraints
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
    """Bind the dims that the options name and infer the shapes again."""
    sizes = _parse(options.dims)
    changed = bind_dims(cx.model, sizes)
    if changed:
        stats.fired["dim bound"] += changed
        stats.interface += [DimBound(name, size) for name, size in sizes.items()]
        rewriter.count += changed
        cx.shapes.redeclare_interface()
        cx.shapes.infer_model()


def bind_dims(model: ir.Model, sizes: Mapping[str, int]) -> int:
    """Replace symbolic dims by ``sizes`` in all declared and inferred shapes.

    Returns the number of changed inputs and outputs. Raises UsageError E633 for a name that no
    input has, for a size that is not a whole number of 0 or more, and for one that breaks a
    constraint of the model.
    """
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise UsageError(
                "E633",
                f"the dim {name!r} cannot be {size!r}",
                fix="give a whole number, 0 or more",
                why="the size of a dim is a number of elements",
            )
    unnamed = unnamed_dims(model.graph.inputs)
    _check_known(model, sizes, unnamed.values())
    bind_constraints(model, sizes)
    interface = {*model.graph.inputs, *model.graph.outputs}
    changed = _bind_unnamed(unnamed, sizes)
    for value in scope.values(model):
        bound = _bind(value.shape, sizes)
        if bound is not None:
            value.shape = bound
            changed += value in interface
    return changed


def _bind_unnamed(unnamed: Mapping[Place, str], sizes: Mapping[str, int]) -> int:
    """Bind dims that only smelt named, by input and axis; return the number of changed inputs."""
    changed: dict[ir.Value, list[int | ir.SymbolicDim]] = {}
    for (value, axis), name in unnamed.items():
        if name in sizes and value.shape is not None:
            changed.setdefault(value, list(value.shape.dims))[axis] = sizes[name]
    for value, dims in changed.items():
        value.shape = ir.Shape(dims)
    return len(changed)


def _parse(dims: tuple[str, ...]) -> dict[str, int]:
    """Return ``NAME=SIZE`` texts as a mapping; raises UsageError E603 for any other text."""
    sizes = {}
    for item in dims:
        name, _, size = item.rpartition("=")
        if not name or not size.isdigit():  # needs 1
            raise UsageError(
                "E603",
                f"{item!r} is not a binding for materialize-symbolic-dims",
                why="a binding is NAME=SIZE with a size of 0 or more",
                fix="for instance: materialize-symbolic-dims{dims=B=1}",
            )
        sizes[name] = int(size)
    return sizes


def _check_known(model: ir.Model, sizes: Mapping[str, int], unnamed: Iterable[str]) -> None:
    """Raise UsageError E633 if no input has a dim of a name in ``sizes``."""
    known: dict[str, None] = dict.fromkeys(unnamed)
    for value in model.graph.inputs:
        for dim in value.shape or ():
            if not isinstance(dim, int) and dim.value is not None:
                known.update(dict.fromkeys(sorted(symbols_of(dim))))
    for name in sizes:
        if name not in known:
            raise UsageError(
                "E633",
                f"no input has a dim called {name!r}",
                why=f"the symbolic dims are {', '.join(known) or 'none'}",
                fix="`smelt inspect` shows the symbolic dims",
            )


def _bind(shape: ir.Shape | None, sizes: Mapping[str, int]) -> ir.Shape | None:
    """Return ``shape`` with the symbols bound; None if it has none of them."""
    if shape is None or not any(symbols_of(dim) & sizes.keys() for dim in shape.dims):  # keeps 1
        return None
    return ir.Shape([size_of(dim, sizes) for dim in shape])


def bind_or_bound_dims(
    model: ir.Model, dims: Mapping[str, int | tuple[int, int]], *, checked: bool
) -> None:
    """Give each symbolic dim in ``dims`` its size, or note its least and greatest size.

    ``checked``: each run refuses sizes outside the bounds. Raises the errors of ``bind_dims`` and
    ``note_bounds``.
    """
    bind_dims(model, {name: size for name, size in dims.items() if not isinstance(size, tuple)})
    ranges = {name: size for name, size in dims.items() if isinstance(size, tuple)}
    note_bounds(model, ranges, int(is_never_empty(model)), checked=checked)
