"""Types of passes: Pass, its declared Exactness, and the PassContext that a pipeline shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.index import NodeIndex
from smelt.ir.opset import import_onnx
from smelt.ir.opsets.axes_once import axes_once
from smelt.ir.rewrite import Rewriter
from smelt.ir.rule import Rule, RuleSet
from smelt.ir.shapes.hidden_shapes import HIDING, hidden_shapes, stated_shapes
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.worklist import RuleStats, Worklist
from smelt.operators import register_all


@dataclass(frozen=True)
class Exactness:
    """How far a pass may change results; ``--verify`` and the tests of passes check against it.

    ``exact``: results are equal bit for bit; NaN equals NaN of any payload. The comparison runs
    both versions with the same kernels: one runtime, one thread, the runtime's graph optimizations
    off. A pass that makes those kernels round differently (a sum along another axis) is not exact.
    ``zero_sign=False`` also allows a zero to change its sign; it is for operators such as Max,
    where ONNX does not define the sign of a zero result.

    ``rounding``: each run of the pass that changes the model may move floating-point results by
    ``ulp`` units in the last place of the largest magnitude that enters the rewritten subgraph,
    constants included. ``check/measure.py`` measures on the source model how large that is at the
    outputs. The bound is absolute: a result that cancellation or a vanishing tail makes small may
    move by any number of its own ulp. If ``relative`` is not 0, each result also moves by at most
    ``relative`` of its own ulp.

    ``assumes``: results are wrong unless ``note`` holds. Such a pass is never in the default
    pipeline.
    """

    kind: Literal["exact", "rounding", "assumes"]
    ulp: int = 0
    note: str = ""
    zero_sign: bool = True
    relative: int = 0

    def __str__(self) -> str:
        """Return the declared error as text, such as ``rounding, 4 ulp: in float32``."""
        text = self.kind if self.kind != "rounding" else f"rounding, {self.ulp} ulp"
        if self.relative:
            text += f", {self.relative} of each result"
        if self.kind == "exact" and not self.zero_sign:
            text += " except for the sign of zeros"
        return f"{text}: {self.note}" if self.note else text


EXACT = Exactness("exact")


def exact_but_zero_sign(note: str) -> Exactness:
    """Return an Exactness that allows only the sign of zeros to change; ``note`` says why."""
    return Exactness("exact", note=note, zero_sign=False)


def joint_exactness(declared: Iterable[Exactness]) -> Exactness:
    """Return the Exactness of several pass runs, one after another: their ulp add up.

    Each run that changed the model counts. The bound of one run covers all of its rewrites, which
    are independent; a later run may rewrite the results of an earlier one.
    """
    parts = list(declared)
    kinds = {part.kind for part in parts}
    kind: Literal["exact", "rounding", "assumes"] = "exact"
    if len(kinds) > 0 and kinds != {"exact"}:
        kind = "assumes" if "assumes" in kinds else "rounding"
    ulp = sum(part.ulp for part in parts)
    return Exactness(kind, ulp, zero_sign=all(part.zero_sign for part in parts))


def rounding(ulp: int, note: str = "", *, relative: int = 0) -> Exactness:
    """Return the Exactness of reordered or fused operations.

    A result moves by up to ``ulp`` units in the last place of the largest magnitude that enters;
    with ``relative``, also by at most ``relative`` units in its own last place.
    """
    return Exactness("rounding", ulp, note, relative=relative)


def assumes(note: str, ulp: int = 0) -> Exactness:
    """Return an Exactness for a pass whose results are right only if ``note`` holds."""
    return Exactness("assumes", ulp, note)


Evaluate: TypeAlias = Callable[[ir.Node, Sequence["np.ndarray | None"]], "list[np.ndarray] | None"]
"""Computes the outputs of one node from constant inputs; returns None if it cannot."""


@dataclass
class PassContext:
    """State that the passes of one compile share.

    ``operators``: the operators beyond ONNX that the target supports; a pass that makes any other
    does not run. ``kernels``: the ONNX operators that the target has kernels for, None for all;
    rules create no others, unless the model already has them. ``computes``: tells whether the
    target computes a given node without changes, None if unknown. ``evaluate`` comes from
    ``compile``. ``rewrites_left`` limits the total number of edits, for bisection. ``hidden``:
    names of results whose shapes a runtime could not infer from the source model.
    """

    model: ir.Model
    shapes: ShapeInference
    constants: Constants
    evaluate: Evaluate | None = None
    operators: frozenset[tuple[str, str]] = frozenset()
    kernels: frozenset[str] | None = None
    computes: Callable[[ir.Node], bool] | None = None
    rewrites_left: int | None = None
    hidden: frozenset[str] = frozenset()
    _index: NodeIndex | None = field(default=None, repr=False)
    _edited: bool = field(default=False, repr=False)

    @classmethod
    def of(cls, model: ir.Model, evaluate: Evaluate | None = None) -> PassContext:
        """Return a context for ``model`` after inferring all shapes."""
        register_all()
        import_onnx(model)
        index = NodeIndex(model)
        may_hide = any(op_type in HIDING for _, op_type in index.operators)
        stated = stated_shapes(model.graph) if may_hide else frozenset()
        shapes = ShapeInference(model)
        shapes.infer_model()
        axes_once(model, shapes, index)
        hidden = hidden_shapes(model.graph, stated) if may_hide else frozenset()
        return cls(model, shapes, Constants(), evaluate, hidden=hidden, _index=index)

    def renew(self) -> None:
        """Discard all derived facts (shapes, constants, index) and infer the shapes again from the
        model."""
        self.shapes.restore_interface()
        self.shapes = ShapeInference(self.model)
        self.shapes.infer_model()
        self.constants = Constants()
        self._index = None

    def index(self) -> NodeIndex:
        """Return the nodes by operator; rebuilt only after edits that the index could not
        follow."""
        if self._index is None:
            self._index = NodeIndex(self.model)
        return self._index

    def forget_index(self) -> None:
        """Rebuild the index at its next use, after an edit that it cannot follow."""
        self._index = None

    def edited(self, rewriter: Rewriter, by_rewriter_alone: bool) -> None:
        """Record the edits of ``rewriter`` and keep the index of nodes current.

        If not ``by_rewriter_alone``, other code changed graphs, too; the index is then built again
        at its next use.
        """
        if rewriter.count or rewriter.removed:
            self._edited = True
            followed = by_rewriter_alone and self.index().follow(
                rewriter.builders, rewriter.removed
            )
            self._index = self._index if followed else None
        if self.rewrites_left is not None:
            self.rewrites_left -= rewriter.count

    def infer_again(self) -> bool:
        """Infer the unknown shapes again if the model was edited since; True if any became
        known."""
        if not self._edited:
            return False
        self._edited = False
        return self.shapes.infer_again(self.index().nodes([("", "Loop")]))

    def rewriter(self) -> Rewriter:
        """Return a Rewriter for the model that obeys the limit of edits."""
        left, kernels = self.rewrites_left, self.kernels
        return Rewriter(self.model, self.shapes, self.constants, left, kernels, self.operators)


Options: TypeAlias = Any
"""An instance of the options dataclass of a pass, None for passes without options."""

Body: TypeAlias = Callable[[PassContext, Rewriter, RuleStats, Options], None]


@dataclass(frozen=True)
class Pass:
    """One unit of a pipeline.

    ``name`` is the name of its file; pipelines and the command line write it with hyphens. ``page``
    is the docstring of the file: a summary line, the graph before and after, Needs, Keeps.
    ``options_type`` is a frozen dataclass, or None. ``default``: the default pipeline has the pass.
    ``after`` and ``before`` name passes that must precede or follow it where both run.
    ``exactness`` is the weakest promise of any run; ``declares`` returns the promise of one run
    from its options and statistics, if runs differ. ``makes`` lists operators beyond ONNX that the
    pass creates; ``source`` names the published pass that it follows. ``by_rewriter``: only the
    Rewriter adds and removes nodes, as in all passes of rules, so the index of nodes can follow.
    """

    name: str
    page: str
    body: Body
    exactness: Exactness = EXACT
    options_type: type | None = None
    default: bool = True
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    makes: tuple[tuple[str, str], ...] = ()
    source: str = ""
    by_rewriter: bool = False
    declares: Callable[[Options, RuleStats], Exactness] | None = field(default=None, compare=False)
    rule_set: RuleSet | None = field(default=None, compare=False)

    def exactness_of(self, stats: RuleStats, options: Options = None) -> Exactness:
        """Return the Exactness of a run with statistics ``stats``; ``options`` None means the
        defaults."""
        if self.declares is None:
            return self.exactness
        if options is None and self.options_type is not None:
            options = self.options_type()
        return self.declares(options, stats)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of the pass; empty if the pass is a function over the model."""
        return self.rule_set.rules if self.rule_set is not None else ()

    @property
    def spelling(self) -> str:
        """The name as pipelines write it, with hyphens."""
        return self.name.replace("_", "-")

    @property
    def summary(self) -> str:
        """The first line of the page."""
        return self.page.strip().splitlines()[0]

    def is_idle(self, cx: PassContext) -> bool:
        """True if the target lacks an operator that the pass makes, or if no rule can match any
        operator of the model."""
        if any(operator not in cx.operators for operator in self.makes):
            return True
        return self.rule_set is not None and not self.rule_set.within(cx.index().operators).rules

    def run(self, cx: PassContext, options: Options = None) -> RuleStats:
        """Run the pass once over the model and return the statistics of its rewrites."""
        stats = RuleStats()
        if self.is_idle(cx):
            return stats
        if options is None and self.options_type is not None:
            options = self.options_type()
        rewriter = cx.rewriter()
        try:
            self.body(cx, rewriter, stats, options)
        finally:
            rewriter.flush()
            cx.edited(rewriter, self.by_rewriter)
        stats.rewrites = rewriter.count
        return stats


def rule_pass(
    name: str,
    page: str | None,
    rules: Iterable[Rule],
    **facts: Any,
) -> Pass:
    """Return a pass that applies ``rules`` until none matches; ``facts`` are fields of Pass.

    A rule reads the options of the pass from its match: ``m.options``.
    """
    indexed = RuleSet(rules)

    def body(cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options) -> None:
        """Rewrite until no rule matches a node of the worklist."""
        Worklist(rewriter, indexed, stats, cx.index(), options).run()

    return Pass(name, page or "", body, rule_set=indexed, by_rewriter=True, **facts)


def graph_pass(name: str, page: str | None, **facts: Any) -> Callable[[Body], Pass]:
    """Return a decorator that makes a Pass of a function ``(context, rewriter, stats,
    options)``."""
    return lambda body: Pass(name, page or "", body, **facts)
