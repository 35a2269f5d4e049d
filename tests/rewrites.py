"""Checks of one pass on ONNX text: the graph it makes, and that both compute the same numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir
from fixpoint import check_text
from opset_forms import try_each_form
from unknown_parts import check_keeps_the_unknown, check_survives_hidden_types

from smelt.check.baseline import Baseline
from smelt.check.comparison_inputs import ComparisonInputs
from smelt.ir import text, verify
from smelt.ir.interface_change import InterfaceChange
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Exactness, Pass, PassContext, rounding
from smelt.runtime.fold import evaluator
from smelt.runtime.inputs import Mode
from smelt.runtime.interface import interface_of

Feeds = dict[str, np.ndarray]
MODES: tuple[Mode, ...] = ("normal", "edges")


class Wider(NamedTuple):
    """What a test allows beyond what the pass declares, and the reason why it has to."""

    ulp: int
    why: str


def run_pass(
    pass_: Pass,
    model: ir.Model,
    operators: frozenset[tuple[str, str]] = frozenset(),
    **options: object,
) -> RuleStats:
    """Run one pass alone on ``model`` and verify its invariants; returns the statistics."""
    stats = _run(pass_, model, operators, **options)
    verify.verify(model)
    return stats


def _run(
    pass_: Pass,
    model: ir.Model,
    operators: frozenset[tuple[str, str]] = frozenset(),
    **options: object,
) -> RuleStats:
    given = _options(pass_, options)
    cx = PassContext.of(model, evaluator(model))
    cx.operators = operators or frozenset(pass_.makes)
    stats = pass_.run(cx, given)
    cx.shapes.restore_interface()
    return stats


def check_rewrite(
    pass_: Pass,
    before: str,
    after: str,
    *,
    opset: int = 23,
    feeds: Feeds | None = None,
    modes: tuple[Mode, ...] = MODES,
    wider: Wider | None = None,
    unrunnable: str = "",
    **options: object,
) -> None:
    """``pass_`` turns ``before`` into ``after``; both give what the pass declares, as judged by
    verification: equal bits, or measured rounding.

    What the default pipeline makes of ``before`` is a fixpoint, here and in the checks below.

    Symbolic dims are run at 3 and at 1. ``unrunnable`` says why no numbers can be compared.
    """
    source, model, expected = (text.parse(t, opset) for t in (before, before, after))
    stats = run_pass(pass_, model, **options)
    check_form_at_other_opsets(pass_, before, opset, model, **options)
    check_keeps_the_unknown(pass_, before, opset, lambda changed: _run(pass_, changed, **options))
    check_survives_hidden_types(before, opset, lambda changed: _run(pass_, changed, **options))
    assert text.canonical(model) == text.canonical(_inferred(expected))
    if not unrunnable:
        declared = _declared(pass_, stats, options, wider)
        check_same_numbers(source, model, declared, feeds, modes, stats.interface)
    check_text(before, opset)


def check_unchanged(pass_: Pass, graph: str, *, opset: int = 23, **options: object) -> None:
    """``pass_`` leaves the graph alone."""
    model = text.parse(graph, opset)
    expected = text.canonical(_inferred(text.parse(graph, opset)))
    stats = run_pass(pass_, model, **options)
    check_form_at_other_opsets(pass_, graph, opset, model, **options)
    assert text.canonical(model) == expected
    assert stats.rewrites == 0
    check_text(graph, opset)


def check_refused(pass_: Pass, graph: str, why: str, *, opset: int = 23, **options: object) -> None:
    """``pass_`` leaves the graph alone and tells ``why`` as a near miss."""
    check_unchanged(pass_, graph, opset=opset, **options)
    stats = run_pass(pass_, text.parse(graph, opset), **options)
    assert why in {reason for _, reason in stats.missed}


def check_operators(
    pass_: Pass,
    before: str,
    operators: Sequence[str],
    *,
    opset: int = 23,
    feeds: Feeds | None = None,
    modes: tuple[Mode, ...] = MODES,
    wider: Wider | None = None,
    **options: object,
) -> ir.Model:
    """``pass_`` leaves these operators, constants apart, in the main graph; same outputs.

    For rewrites whose constants are long; returns the new model.
    """
    source, model = (text.parse(before, opset) for _ in range(2))
    stats = run_pass(pass_, model, **options)
    check_form_at_other_opsets(pass_, before, opset, model, **options)
    assert [n.op_type for n in model.graph if n.op_type != "Constant"] == list(operators)
    declared = _declared(pass_, stats, options, wider)
    check_same_numbers(source, model, declared, feeds, modes, stats.interface)
    check_text(before, opset)
    return model


def check_form_at_other_opsets(
    pass_: Pass, graph: str, opset: int, made: ir.Model, **options: object
) -> None:
    """Wherever ``graph`` is a valid model, whatever the pass makes of it has the form of its opset.

    Operators changed between opsets: axes that were an attribute became an input. ``made`` is what
    the pass made of it at its own.
    """

    def run(other: int) -> ir.Model | None:
        model = text.parse(graph, other)
        if model.opset_imports[""] != other or list(verify.problems_of(model)):
            return None
        run_pass(pass_, model, **options)
        return model

    try_each_form([text.parse(graph, opset), made], run)


def _declared(
    pass_: Pass, stats: RuleStats, options: Mapping[str, object], wider: Wider | None
) -> Exactness:
    """What the run promises, or what a test allows beyond that."""
    if wider is not None:
        return rounding(wider.ulp, wider.why)
    return pass_.exactness_of(stats, _options(pass_, options))


def _options(pass_: Pass, options: Mapping[str, object]) -> object:
    if pass_.options_type is None:
        assert not options, f"{pass_.spelling} takes no options, but got {options}"
        return None
    return pass_.options_type(**options)


def check_same_numbers(
    source: ir.Model,
    model: ir.Model,
    declared: Exactness = EXACT,
    feeds: Feeds | None = None,
    modes: tuple[Mode, ...] = MODES,
    changes: Sequence[InterfaceChange] = (),
) -> None:
    """Both models give the same outputs, as ``declared``, at every size tried.

    Without ``"edges"`` among ``modes``, a fused operator may differ where a step of the other
    overflows.
    """
    dims = dict.fromkeys(interface_of(source).symbols(), (3, 1))
    cases = []
    if feeds is not None:
        cases = [
            ComparisonInputs([feeds[str(value.name)] for value in source.graph.inputs], {}, "given")
        ]
    baseline = Baseline(source, dims, modes=modes, cases=cases)
    problems = baseline.with_changes(changes, declared).judge(model, declared)
    assert not problems, "\n".join([str(declared), *problems])


def _inferred(model: ir.Model) -> ir.Model:
    PassContext.of(model).shapes.restore_interface()
    return model
