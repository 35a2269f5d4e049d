"""Checks of one pass on ONNX text: the graph it makes, and that both compute the same numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from fixpoint import check_text
from onnx import defs

from smelt.ir import text, verify
from smelt.ir.worklist import RuleStats
from smelt.passes.base import Pass, PassContext
from smelt.runtime.fold import evaluator
from smelt.runtime.inputs import Mode, random_inputs
from smelt.runtime.interface import interface_of
from smelt.runtime.runner import open_runner

Feeds = dict[str, np.ndarray]
MODES: tuple[Mode, ...] = ("normal", "edges")
OPSETS = range(13, defs.onnx_opset_version() + 1)
"""What smelt takes without raising it, up to the newest that onnx knows."""


def run_pass(
    pass_: Pass,
    model: ir.Model,
    operators: frozenset[tuple[str, str]] = frozenset(),
    **options: object,
) -> RuleStats:
    """Run one pass alone on ``model`` and verify its invariants; returns the statistics."""
    given = pass_.options_type(**options) if pass_.options_type is not None else None
    cx = PassContext.of(model, evaluator(model))
    cx.operators = operators or frozenset(pass_.makes)
    stats = pass_.run(cx, given)
    cx.shapes.restore_interface()
    verify.verify(model)
    return stats


def check_rewrite(
    pass_: Pass,
    before: str,
    after: str,
    *,
    opset: int = 23,
    feeds: Feeds | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    compare: bool = True,
    modes: tuple[Mode, ...] = MODES,
    **options: object,
) -> None:
    """``pass_`` turns ``before`` into ``after``; both give the same outputs on random inputs.

    What the default pipeline makes of ``before`` is a fixpoint, here and in the checks below.

    Symbolic dims are run at 3 and at 1. ``compare=False`` is for operators no runtime has.
    """
    source, model, expected = (text.parse(t, opset) for t in (before, before, after))
    run_pass(pass_, model, **options)
    check_form_at_other_opsets(pass_, before, opset, **options)
    assert text.canonical(model) == text.canonical(_inferred(expected))
    if compare:
        check_same_numbers(source, model, feeds, rtol, atol, modes)
    check_text(before, opset)


def check_unchanged(pass_: Pass, graph: str, *, opset: int = 23, **options: object) -> None:
    """``pass_`` leaves the graph alone."""
    model = text.parse(graph, opset)
    check_form_at_other_opsets(pass_, graph, opset, **options)
    expected = text.canonical(_inferred(text.parse(graph, opset)))
    stats = run_pass(pass_, model, **options)
    assert text.canonical(model) == expected
    assert stats.rewrites == 0
    check_text(graph, opset)


def check_operators(
    pass_: Pass,
    before: str,
    operators: Sequence[str],
    *,
    opset: int = 23,
    feeds: Feeds | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    compare: bool = True,
    modes: tuple[Mode, ...] = MODES,
    **options: object,
) -> ir.Model:
    """``pass_`` leaves these operators, constants apart, in the main graph; same outputs.

    For rewrites whose constants are long; returns the new model.
    """
    source, model = (text.parse(before, opset) for _ in range(2))
    run_pass(pass_, model, **options)
    check_form_at_other_opsets(pass_, before, opset, **options)
    assert [n.op_type for n in model.graph if n.op_type != "Constant"] == list(operators)
    if compare:
        check_same_numbers(source, model, feeds, rtol, atol, modes)
    check_text(before, opset)
    return model


def check_form_at_other_opsets(pass_: Pass, graph: str, opset: int, **options: object) -> None:
    """Wherever ``graph`` is a valid model, whatever the pass makes of it has the form of its opset.

    Operators changed between opsets: axes that were an attribute became an input.
    """
    for other in OPSETS:
        model = text.parse(graph, other)
        if model.opset_imports[""] != opset and not list(verify.problems_of(model)):
            run_pass(pass_, model, **options)


def check_same_numbers(
    a: ir.Model,
    b: ir.Model,
    feeds: Feeds | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    modes: tuple[Mode, ...] = MODES,
) -> None:
    """Both models give the same outputs, NaN and infinities included, at every size tried.

    Without ``"edges"`` among ``modes``, a fused operator may differ where a step of the other
    overflows.
    """
    symbols = interface_of(a).symbols()
    run_a, run_b = open_runner(a), open_runner(b)
    for size in (3, 1) if symbols else (1,):
        for mode in modes:
            inputs = (
                [feeds[value.name] for value in a.graph.inputs]
                if feeds is not None
                else random_inputs(a, dict.fromkeys(symbols, size), seed=size, mode=mode)
            )
            for x, y in zip(run_a(*inputs), run_b(*inputs), strict=True):
                assert_same(x, y, rtol, atol)


def assert_same(x: np.ndarray, y: np.ndarray, rtol: float, atol: float) -> None:
    """Equal types; floats close, everything else equal."""
    assert x.dtype == y.dtype
    assert x.shape == y.shape
    if x.dtype.kind in "fcV":
        np.testing.assert_allclose(
            x.astype(np.float64), y.astype(np.float64), rtol=rtol, atol=atol, equal_nan=True
        )
    else:
        np.testing.assert_array_equal(x, y)


def _inferred(model: ir.Model) -> ir.Model:
    PassContext.of(model).shapes.restore_interface()
    return model
