"""The named stages of pipelines, as plain text in the language of ``pipeline.py``."""

from __future__ import annotations

from collections.abc import Mapping


def _listed(*names: str) -> str:
    return ",".join(names)


ROUNDS = 64
"""Rounds of the default pipeline at most. A round runs only the passes that a change since they
last found nothing may concern, so that what takes many costs little."""

CANONICALIZE = _listed("swap-dot-general", "legalize-dot-general", "max-to-relu")
"""One spelling for each meaning, so that patterns need to know only that."""

SIMPLIFY = _listed(
    "roll-recurrent-cells",
    "const-elimination",
    "const-deduplication",
    "noop-elimination",
    "select-optimization",
    "cast-optimization",
    "fold-bool-compare",
    "fold-control-flow",
    "unroll-sequences",
    "fuse-floor-mod",
    "fuse-squeeze-expand-dims",
    "fuse-reduce-keepdims",
    "fuse-stack-split",
    "gather-to-split-fusion",
    "merge-consecutive-slices",
    "strided-slices-to-transpose",
    "merge-consecutive-concats",
    "fuse-onehot-matmul-to-gather",
    "concat-to-pixel-shuffle",
    "replace-stack-reshape",
    "detect-concat-interleave",
    "fold-affine-indices",
    "use-reflection-padding",
    "fold-reshape-pairs",
    "loop-invariant-elimination",
    "uplift-while-to-for",
    "merge-consecutive-relus",
    "clip-of-min-max",
    "fold-index-wrap",
    "merge-consecutive-paddings",
    "remove-symbolic-reshape",
    "drop-zero-state",
    "sink-expand",
    "sink-unit-dims",
    "split-before-reshape",
    "hoist-bias",
    "merge-consecutive-reshapes",
    "merge-consecutive-transposes",
    "reduce-transposes",
    "hoist-transposes",
    "remove-redundant-ops",
    "fuse-shape-slice",
    "divide-to-multiply",
)
"""Fewer nodes with the same bits."""

QUANTIZE = _listed(
    "dequantize-to-constexpr",
    "merge-affine-dequantize-with-consecutive-ops",
    "int-op-canonicalization{keep-groups}",
    "nullify-redundant-quantization-zero-point{keep-groups}",
    "dequantize-quantize-pair-elimination",
)
"""Integers that stay integers, and groups that stay whole."""

FUSE = _listed(
    "compose-conv1d",
    "fuse-dilated-conv",
    "fuse-pad-conv",
    "guard-padded-maximum",
    "drop-taps-in-padding",
    "fuse-conv-batchnorm",
    "fuse-conv-scale",
    "fuse-conv-bias",
    "einsum-to-matmul",
    "fuse-transpose-matmul",
    "put-vectors-first",
    "unflatten-matmul",
    "unmerge-matmul",
    "fuse-matmul-weight-bias",
    "fuse-linear-bias",
    "merge-constant-terms",
    "offset-to-bias",
    "fuse-linear-scale",
    "fuse-gelu-exact",
    "fuse-gelu-tanh-approximation",
    "fuse-gelu-sigmoid-approximation",
    "fuse-leaky-relu",
    "fuse-prelu",
    "prelu-to-lrelu",
    "fuse-reduce-mean",
    "fuse-layernorm-or-instancenorm",
    "fuse-softmax",
    "fuse-sigmoid",
    "fuse-hard-swish",
    "fuse-swish",
    "dot-merger",
    "attention",
    "fuse-pixel-shuffle",
    "transpose-to-reshape",
    "slices-to-split",
)
"""One operator for many."""

ATTENTION = (
    "fixpoint(sink-unit-dims,merge-consecutive-reshapes,unmerge-transpose,"
    "merge-consecutive-transposes,drop-softmax-guard,"
    f"reduce-transposes,noop-elimination,fuse-rotary-embedding,fuse-attention,"
    f"fuse-attention-cache){{max={ROUNDS}}}"
)
"""Heads, what moves around them, and the operator: each step clears the way for the next."""

_EXPANDING = (
    "fuse-group-norm,expand-attention,sink-expand,const-deduplication,remove-redundant-ops,"
    "const-elimination,merge-consecutive-transposes,merge-consecutive-reshapes,"
    "inline-operator-bodies,fold-control-flow,cast-optimization,noop-elimination,"
    "dead-code-elimination"
)
EXPANDED = f"fixpoint({_EXPANDING}){{max={ROUNDS}}},dedup-op-and-var-names"
"""For targets that have kernels for operators of normalization but for no attention. What all
layers expand to alike, such as a causal mask, is made once. Operators that are left without a
kernel become what ONNX says they are."""

PLANNED = (
    f"fixpoint({_EXPANDING},sink-into-branches,level-loop-states){{max={ROUNDS}}},"
    "dedup-op-and-var-names"
)
"""The same for targets that plan memory before a run, so that each tensor has one rank."""

EXPANDED_OPERATORS = frozenset({"Attention"})
"""What those passes turn into small operators."""

CLEANUP = _listed(
    "const-deduplication",
    "dead-code-elimination",
    "dedup-op-and-var-names",
)
"""What is left over: dead nodes, equal constants, clashing names."""

_ROUNDS = f"fixpoint(dead-code-elimination,canonicalize,simplify,quantize,fuse){{max={ROUNDS}}}"
DEFAULT = f"fixpoint({_ROUNDS},gather-moved-rows){{max={ROUNDS}}},sum-residuals,cleanup"
"""Dead nodes go first, because what nobody needs may not keep two nodes apart; Gathers of rows and
Sums come last, because rules know halves that are swapped as Slices, and a sum of two as Add. What
is next to each other once rows are gathered is looked at again."""

FAST_MATH = "divide-to-multiply{fast=true}"
"""What rounds more than it must; only by name, or with ``--fast-math``."""

ASSUME_FINITE = "select-optimization{assume-finite=true}"
"""What is right only if no value is NaN or infinite; only by name, or with ``--assume-finite``."""

STAGES: Mapping[str, str] = {
    "canonicalize": CANONICALIZE,
    "simplify": SIMPLIFY,
    "quantize": QUANTIZE,
    "fuse": FUSE,
    "attention": ATTENTION,
    "cleanup": CLEANUP,
    "default": DEFAULT,
    "fast-math": FAST_MATH,
    "assume-finite": ASSUME_FINITE,
    "O1": "canonicalize,simplify,cleanup",
    "O2": "default",
    "O3": "default,fast-math",
}
