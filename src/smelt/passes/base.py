"""What a pass is: a named, documented set of rules, or one function over the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir.axes_once import axes_once
from smelt.ir.constants import Constants
from smelt.ir.hidden_shapes import HIDING, hidden_shapes, stated_shapes
from smelt.ir.index import NodeIndex
from smelt.ir.opset import import_onnx
from smelt.ir.rewrite import Rewriter
from smelt.ir.rule import Rule, RuleSet
from smelt.ir.shapes import ShapeInference
from smelt.ir.worklist import RuleStats, Worklist
from smelt.operators import register_all


@dataclass(frozen=True)
class Exactness:
    """How a pass may change results; verification and the tests of passes hold it to this.

    ``exact``: bit for bit, NaN for NaN of any payload. Both versions are run by the same kernels:
    in one runtime, on one thread, with its own graph optimizations off. A pass that moves an
    operation to where those kernels round otherwise (a sum along another axis) is not exact.
    ``zero_sign=False`` lets a zero take the other sign, and nothing else; it is for rewrites of
    operators such as Max, of which ONNX does not say which zero they return.

    ``rounding``: floating-point results move by up to ``ulp`` units in the last place of the
    largest magnitude that enters the rewritten part, constants included, in each run of the pass
    that changed something. What that is at the outputs is measured on the source
    (``check/measure.py``). This is an absolute error: a result that is small beside what enters,
    because terms cancel or a tail vanishes, may move by any number of its own units. Where
    ``relative`` is not 0, each result also moves by at most so many units of its own.

    ``assumes``: wrong unless ``note`` holds, so never in the default pipeline.
    """

    kind: Literal["exact", "rounding", "assumes"]
    ulp: int = 0
    note: str = ""
    zero_sign: bool = True
    relative: int = 0

    def __str__(self) -> str:
        text = self.kind if self.kind != "rounding" else f"rounding, {self.ulp} ulp"
        if self.relative:
            text += f", {self.relative} of each result"
        if self.kind == "exact" and not self.zero_sign:
            text += " but for the sign of zeros"
        return f"{text}: {self.note}" if self.note else text


EXACT = Exactness("exact")


def exact_but_zero_sign(note: str) -> Exactness:
    """Bit for bit, except that a zero may take the other sign; ``note`` says why."""
    return Exactness("exact", note=note, zero_sign=False)


def together(declared: Iterable[Exactness]) -> Exactness:
    """What passes promise that ran one after the other: their ulp add up.

    A pass counts each time that it changed something. What it rewrote in one run, it rewrote side
    by side, and its measure covers that; a later run may rewrite the results of an earlier one.
    """
    parts = list(declared)
    kinds = {part.kind for part in parts}
    kind: Literal["exact", "rounding", "assumes"] = "exact"
    if len(kinds) > 0 and kinds != {"exact"}:
        kind = "assumes" if "assumes" in kinds else "rounding"
    ulp = sum(part.ulp for part in parts)
    return Exactness(kind, ulp, zero_sign=all(part.zero_sign for part in parts))


def rounding(ulp: int, note: str = "", *, relative: int = 0) -> Exactness:
    """Results may move by ``ulp``, because operations are reordered or fused; with ``relative``
    each by no more than so many units of its own."""
    return Exactness("rounding", ulp, note, relative=relative)


def assumes(note: str, ulp: int = 0) -> Exactness:
    """Results are kept only if ``note`` holds."""
    return Exactness("assumes", ulp, note)


Evaluate: TypeAlias = Callable[[ir.Node, Sequence["np.ndarray | None"]], "list[np.ndarray] | None"]
"""Computes the outputs of one node from constant inputs, or None if it cannot."""


@dataclass
class PassContext:
    """What a pipeline works on; one for a whole compile.

    ``operators`` are the operators beyond ONNX that the target lists: a pass that makes others
    does not run. ``kernels`` are those of ONNX itself that it computes, None for all: rules make no
    others, unless the model has them already. ``computes`` says of a node whether the target
    computes it as it stands, None if it does not say. ``evaluate`` is handed down by ``compile``.
    ``rewrites_left`` limits all edits together, for bisection. ``hidden`` are the names of results
    whose shapes a runtime did not know in the source.
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
        """A context for ``model`` with every shape inferred."""
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
        """Know nothing of the model but what it says itself, after edits that no facts survive."""
        self.shapes.restore_interface()
        self.shapes = ShapeInference(self.model)
        self.shapes.infer_model()
        self.constants = Constants()
        self._index = None

    def index(self) -> NodeIndex:
        """The nodes by operator, walked anew only after edits that an index cannot follow."""
        if self._index is None:
            self._index = NodeIndex(self.model)
        return self._index

    def forget_index(self) -> None:
        """Walk the model anew for the next index, after an edit that none can follow."""
        self._index = None

    def edited(self, rewriter: Rewriter, alone: bool) -> None:
        """Note what ``rewriter`` did; ``alone`` says that nothing else changed any graph."""
        if rewriter.count or rewriter.removed:
            self._edited = True
            followed = alone and self.index().follow(rewriter.builders, rewriter.removed)
            self._index = self._index if followed else None
        if self.rewrites_left is not None:
            self.rewrites_left -= rewriter.count

    def infer_again(self) -> bool:
        """Look once more at shapes that were not known, if anything was edited since; True if more
        is known now."""
        if not self._edited:
            return False
        self._edited = False
        return self.shapes.infer_again(self.index().nodes([("", "Loop")]))

    def rewriter(self) -> Rewriter:
        """A Rewriter on the model, within the limit of edits."""
        left, kernels = self.rewrites_left, self.kernels
        return Rewriter(self.model, self.shapes, self.constants, left, kernels)


Options: TypeAlias = Any
"""An instance of the options dataclass of a pass, None for passes without options."""

Body: TypeAlias = Callable[[PassContext, Rewriter, RuleStats, Options], None]


@dataclass(frozen=True)
class Pass:
    """One unit of a pipeline.

    ``name`` is the file's name; pipelines and the command line spell it with hyphens. ``page``
    is the docstring of its file: first line the summary, then before and after, Needs, Keeps.
    ``options_type`` is a frozen dataclass, or None. ``default`` says that the default pipeline
    holds it. ``after`` and ``before`` name passes that must come first or later where both run.
    ``exactness`` is the least that it promises; ``declares`` says what a run with these options
    promises that did what its statistics say, where that is more.
    ``makes`` lists operators beyond ONNX that it makes; ``source`` names the published pass.
    ``by_rewriter`` says that nodes come and go through the Rewriter alone, as in all passes of
    rules, so that the index of nodes can follow.
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
        """What a run with ``options``, None for the defaults, promises that did ``stats``."""
        if self.declares is None:
            return self.exactness
        if options is None and self.options_type is not None:
            options = self.options_type()
        return self.declares(options, stats)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that it runs; none for a function over the model."""
        return self.rule_set.rules if self.rule_set is not None else ()

    @property
    def spelling(self) -> str:
        """The name as pipelines write it."""
        return self.name.replace("_", "-")

    @property
    def summary(self) -> str:
        """The first line of the page."""
        return self.page.strip().splitlines()[0]

    def is_idle(self, cx: PassContext) -> bool:
        """True if the target lacks what it makes, or the model what each of its rules needs."""
        if any(operator not in cx.operators for operator in self.makes):
            return True
        return self.rule_set is not None and not self.rule_set.within(cx.index().operators).rules

    def run(self, cx: PassContext, options: Options = None) -> RuleStats:
        """Run once over the model; what changed is in the statistics."""
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
    """A pass that runs ``rules`` to their fixed point; ``facts`` are fields of Pass.

    Rules find the options of the pass at their match: ``m.options``.
    """
    indexed = RuleSet(rules)

    def body(cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options) -> None:
        Worklist(rewriter, indexed, stats, cx.index(), options).run()

    return Pass(name, page or "", body, rule_set=indexed, by_rewriter=True, **facts)


def graph_pass(name: str, page: str | None, **facts: Any) -> Callable[[Body], Pass]:
    """Make a pass of one function ``(context, rewriter, stats, options)``."""
    return lambda body: Pass(name, page or "", body, **facts)
