"""``cond``, ``while`` and ``scan`` as If, Loop and Scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Aval, ClosedJaxpr, platform_choice
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.plugins.elementwise.arithmetic import where
from smelt.frontends.jax.registry import lowers
from smelt.ir.same_shape import is_positive

Results: TypeAlias = tuple[ir.Value, ...]


@lowers("platform_index")
def platform_index(cx: Lowering, *, platforms: Sequence[Sequence[str] | None]) -> ir.Value:
    """Return the index of the branch that JAX takes on a CPU; refuses if no branch is for a CPU."""
    branch = platform_choice(platforms)
    if branch is None:
        raise cx.unsupported("none of its alternatives is for a CPU", "give it a default")
    return cx.constant(np.int32(branch))


@lowers("cond")
def cond(
    cx: Lowering,
    index: ir.Value,
    *operands: ir.Value,
    branches: Sequence[ClosedJaxpr],
    branches_platforms: Sequence[Sequence[str] | None] | None = None,
) -> tuple[ir.Value, ...]:
    """Lower two branches to an If; more are bisected, to a depth of log2 of their number."""
    avals = cx.avals_out
    branch_operands = [
        Operand(value, tuple(aval.shape))
        for value, aval in zip(operands, cx.avals_in[1:], strict=True)
    ]

    def choose(cx: Lowering, low: int, high: int) -> list[ir.Value]:
        """Return the results of branch ``index``, which is at least ``low`` and below ``high``."""
        if high - low == 1:
            return _values(cx, cx.inline(branches[low], branch_operands), avals)
        middle = (low + high) // 2
        first = cx.op("Less", index, cx.const_like(middle, index))
        graphs = {}
        for name, bounds in (("then_branch", (low, middle)), ("else_branch", (middle, high))):
            inner = cx.branch(name=name)
            results = choose(inner, *bounds)
            graphs[name] = inner.finish(list(zip(results, avals, strict=True)))
        return list(cx.ops("If", first, outputs=len(avals), **graphs))

    if branches_platforms is not None:
        branch = platform_choice(branches_platforms) or 0  # platform_index refuses None.
        return tuple(choose(cx, branch, branch + 1))
    # An index out of range selects the nearest branch, as the comparisons do.
    return tuple(choose(cx, 0, len(branches)))


@lowers("while")
def while_(
    cx: Lowering,
    *operands: ir.Value,
    cond_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    body_jaxpr: ClosedJaxpr,
) -> tuple[ir.Value, ...]:
    """Lower to a Loop.

    Under vmap the condition is a vector, one element for each batch row (``mask``). A row keeps its
    values once its condition is false, and the loop ends when no row continues.
    """
    all_operands = _operands(operands, cx.avals_in)
    condition_constants = all_operands[:cond_nconsts]
    constants = all_operands[cond_nconsts : cond_nconsts + body_nconsts]
    carry = all_operands[cond_nconsts + body_nconsts :]
    avals = cx.avals_out
    mask = cond_jaxpr.jaxpr.outvars[0].aval
    enters = _any_row_holds(cx, cx.inline(cond_jaxpr, [*condition_constants, *carry]), mask)
    body, carried = _body(cx, avals, counted=True)
    results = _values(body, body.inline(body_jaxpr, [*constants, *carried[2:]]), avals)
    if mask.shape:
        active = _values(
            body, body.inline(cond_jaxpr, [*condition_constants, *carried[2:]]), [mask]
        )[0]
        results = _where_active(body, active, results, carried[2:])
    stepped_operands = _operands(results, avals)
    continues = _any_row_holds(
        body, body.inline(cond_jaxpr, [*condition_constants, *stepped_operands]), mask
    )
    graph = body.finish([(continues, _BOOL), *zip(results, avals, strict=True)])
    values = [operand.value for operand in carry]
    return cx.ops("Loop", None, enters, *values, outputs=len(avals), body=graph)


@lowers("scan")
def scan(
    cx: Lowering,
    *operands: ir.Value,
    reverse: bool,
    length: Any,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    unroll: Any,
) -> tuple[ir.Value, ...]:
    """Lower to a Scan, or to a Loop if there are no arrays to scan over.

    ONNX Runtime's Scan fails on empty inputs, so a length that may be 0 gets an If around the Scan.
    """
    scan_operands, avals = _operands(operands, cx.avals_in), cx.avals_out
    carry = scan_operands[num_consts : num_consts + num_carry]

    def with_steps(cx: Lowering) -> Results:
        """Return the results for a positive length."""
        return _scanned(cx, scan_operands, avals, reverse, length, jaxpr, num_consts, num_carry)

    has_xs = len(scan_operands) > num_consts + num_carry
    if not has_xs or is_positive(cx.symbols.dim(length)):
        return with_steps(cx)
    if isinstance(length, int):
        return _no_steps(cx, carry, avals)
    return _if_any(cx, length, with_steps, lambda cx: _no_steps(cx, carry, avals))


def _if_any(
    cx: Lowering,
    length: Any,
    some: Callable[[Lowering], Results],
    none: Callable[[Lowering], Results],
) -> Results:
    """Return the results of ``some`` if ``length`` is positive, else those of ``none``."""
    graphs = {}
    for name, build in (("then_branch", some), ("else_branch", none)):
        inner = cx.branch(name=name)
        graphs[name] = inner.finish(list(zip(build(inner), cx.avals_out, strict=True)))
    any_steps = cx.op("Greater", cx.dim_scalar(length), cx.const_i64(0))
    return cx.ops("If", any_steps, outputs=len(cx.avals_out), **graphs)


def _scanned(
    cx: Lowering,
    operands: Sequence[Operand],
    avals: Sequence[Aval],
    reverse: bool,
    length: Any,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
) -> Results:
    """Return the results of a Scan over ``xs``; without ``xs``, of a Loop of ``length`` steps.

    ``operands`` are ``num_consts`` constants, ``num_carry`` carried values, then ``xs``.
    """
    constants, carry = operands[:num_consts], operands[num_consts : num_consts + num_carry]
    xs = operands[num_consts + num_carry :]
    if isinstance(length, int) and length == 0:
        return _no_steps(cx, carry, avals)
    inner_avals = [variable.aval for variable in jaxpr.jaxpr.outvars]
    slice_avals = [variable.aval for variable in jaxpr.jaxpr.invars[num_consts + num_carry :]]
    carried_avals = inner_avals[:num_carry]
    body, inputs = _body(cx, [*carried_avals, *slice_avals], counted=not xs)
    results = body.inline(jaxpr, [*constants, *inputs[0 if xs else 2 :]])
    outputs = list(zip(_values(body, results, inner_avals), inner_avals, strict=True))
    if xs:
        return _scan(cx, carry, xs, body.finish(outputs), reverse, len(avals))
    # Without xs the body has the inputs of a Loop: iteration number, condition, carry.
    graph = body.finish([(body.op("Identity", inputs[1].value), _BOOL), *outputs])
    always = cx.constant(np.asarray(True))
    initial = [operand.value for operand in carry]
    steps = cx.dim_scalar(length)
    looped = cx.ops("Loop", steps, always, *initial, outputs=len(avals), body=graph)
    if not reverse:
        return looped
    return (*looped[:num_carry], *(_reversed(cx, value) for value in looped[num_carry:]))


def _scan(
    cx: Lowering,
    carry: Sequence[Operand],
    xs: Sequence[Operand],
    graph: ir.Graph,
    reverse: bool,
    count: int,
) -> Results:
    """Return the ``count`` results of a Scan with the body ``graph``.

    Carried values come first, then stacked ones.
    """
    values = [operand.value for operand in (*carry, *xs)]
    stacked = count - len(carry)
    return cx.ops(
        "Scan",
        *values,
        outputs=count,
        body=graph,
        num_scan_inputs=len(xs),
        scan_input_directions=[1] * len(xs) if reverse else None,
        scan_output_directions=[1] * stacked if reverse and stacked else None,
    )


def _reversed(cx: Lowering, x: ir.Value) -> ir.Value:
    """Return ``x`` in reverse order along its first dim."""
    return cx.slice(x, [-1], [np.iinfo(np.int64).min], [0], [-1])


def _no_steps(
    cx: Lowering, carry: Sequence[Operand], avals: Sequence[Aval]
) -> tuple[ir.Value, ...]:
    """Return the results of a scan of length 0: the carry, then stacked results without rows."""
    empty = [
        cx.expand(cx.constant(np.zeros((), np.dtype(aval.dtype))), aval.shape)
        for aval in avals[len(carry) :]
    ]
    return (*(operand.value for operand in carry), *empty)


class _Bool:
    """The type of a loop condition."""

    shape = ()
    dtype = np.dtype(np.bool_)


class _Count:
    """The type of a loop counter."""

    shape = ()
    dtype = np.dtype(np.int64)


_BOOL: Aval = _Bool()
_COUNT: Aval = _Count()


def _body(cx: Lowering, avals: Sequence[Aval], *, counted: bool) -> tuple[Lowering, list[Operand]]:
    """Return a subgraph and its inputs, one for each aval.

    If ``counted``, the two inputs of a Loop body come first: the counter and the condition.
    """
    input_types = [_COUNT, _BOOL, *avals] if counted else list(avals)
    inputs = [
        ir.Value(
            name=cx.fresh("loop"),
            type=ir.TensorType(ir.DataType.from_numpy(np.dtype(aval.dtype))),
            shape=cx.symbols.shape(aval.shape),
        )
        for aval in input_types
    ]
    operands = [Operand(v, tuple(aval.shape)) for v, aval in zip(inputs, input_types, strict=True)]
    return cx.branch(inputs), operands


def _operands(values: Sequence[ir.Value], avals: Sequence[Aval]) -> list[Operand]:
    """Return each value as an Operand with the shape of its aval."""
    return [Operand(v, tuple(aval.shape)) for v, aval in zip(values, avals, strict=True)]


def _values(cx: Lowering, operands: Sequence[Operand], avals: Sequence[Aval]) -> list[ir.Value]:
    """Return the value of each operand, broadcast to the shape of its aval."""
    return [cx.broadcast(operand, aval) for operand, aval in zip(operands, avals, strict=True)]


def _any_row_holds(cx: Lowering, test: Sequence[Operand], mask: Aval) -> ir.Value:
    """Return a boolean: whether the condition holds in any row of a batch.

    ONNX Runtime does not reduce an empty vector to 0, so a 0 is appended before the sum.
    """
    (value,) = _values(cx, test, [mask])
    if not mask.shape:
        return value
    flat = cx.op("Reshape", cx.cast(value, np.dtype(np.int64)), cx.const_i64([-1]))
    count = cx.op("ReduceSum", cx.op("Concat", flat, cx.const_i64([0]), axis=0), keepdims=0)
    return cx.op("Greater", count, cx.const_i64(0))


def _where_active(
    cx: Lowering, active: ir.Value, new: Sequence[ir.Value], old: Sequence[Operand]
) -> list[ir.Value]:
    """Return ``new`` in the batch rows where ``active`` is true, ``old`` in the others."""
    assert active.shape is not None
    rank = len(active.shape)
    selected = []
    for value, old_operand in zip(new, old, strict=True):
        mask = cx.unsqueeze(active, range(rank, len(old_operand.shape)))
        selected.append(where(cx, mask, value, old_operand.value))
    return selected
