"""The named stages of pipelines, as text in the language of ``pipeline.py``."""

from __future__ import annotations

from collections.abc import Mapping


def _comma_separated(*names: str) -> str:
    """Return the pipeline text of ``names``, separated by commas."""
    return ",".join(names)


ROUNDS = 64
"""Limit of rounds of the default pipeline. A round skips each pass that found nothing to do and
whose model has not changed since, so late rounds are cheap."""

CANONICALIZE = _comma_separated(
    "swap-dot-general",
    "fold-conjugate",
    "part-of-complex-dot",
    "legalize-dot-general",
    "max-to-relu",
)
"""Gives equal computations one form, so that patterns need to match only that form."""

SIMPLIFY = _comma_separated(
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
    "gather-moved-table",
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
    "drop-leading-ones",
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
"""Removes nodes without changing a bit of the results."""

QUANTIZE = _comma_separated(
    "dequantize-to-constexpr",
    "merge-affine-dequantize-with-consecutive-ops",
    "int-op-canonicalization{keep-groups}",
    "nullify-redundant-quantization-zero-point{keep-groups}",
    "dequantize-quantize-pair-elimination",
)
"""Keeps integers as integers, and quantized groups (dequantize, operator, quantize) together."""

FUSE = _comma_separated(
    "compose-conv1d",
    "fuse-dilated-conv",
    "fuse-pad-conv",
    "use-global-pool",
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
"""Replaces several operators by one."""

ATTENTION = (
    "fixpoint(sink-unit-dims,merge-consecutive-reshapes,unmerge-transpose,"
    "merge-consecutive-transposes,drop-softmax-guard,"
    f"reduce-transposes,noop-elimination,fuse-rotary-embedding,fuse-attention,"
    f"fuse-attention-cache){{max={ROUNDS}}}"
)
"""Fuses attention: head splits and transposes are simplified first, so that the operator
matches."""

_EXPANDING = (
    "fuse-group-norm,expand-attention,sink-expand,const-deduplication,remove-redundant-ops,"
    "const-elimination,merge-consecutive-transposes,merge-consecutive-reshapes,"
    "inline-operator-bodies,fold-control-flow,cast-optimization,noop-elimination,"
    "dequantize-to-constexpr{copy-shared=true},dead-code-elimination"
)
EXPANDED = f"fixpoint({_EXPANDING}){{max={ROUNDS}}},dedup-op-and-var-names"
"""For targets with kernels for normalization operators but none for attention. Parts that all
layers expand to, such as a causal mask, are shared. Operators without a kernel are replaced by
their ONNX function bodies."""

PLANNED = (
    f"fixpoint({_EXPANDING},sink-into-branches,level-loop-states){{max={ROUNDS}}},"
    "dedup-op-and-var-names"
)
"""The same for targets that plan memory before a run: each tensor has one rank."""

EXPANDED_OPERATORS = frozenset({"Attention"})
"""The operators that these pipelines expand into smaller ones."""

CLEANUP = _comma_separated(
    "const-deduplication",
    "dead-code-elimination",
    "dedup-op-and-var-names",
)
"""Removes leftovers: dead nodes, equal constants, clashing names."""

_ROUNDS = f"fixpoint(dead-code-elimination,canonicalize,simplify,quantize,fuse){{max={ROUNDS}}}"
DEFAULT = f"fixpoint({_ROUNDS},gather-moved-rows){{max={ROUNDS}}},sum-residuals,cleanup"
"""Dead nodes are removed first, because an unread reader can block a rewrite. Gathers of rows and
Sums come last: other rules know swapped halves as Slices and a sum of two as Add. The outer
fixpoint simplifies again after Gathers were merged."""

FAST_MATH = "divide-to-multiply{fast=true}"
"""Rewrites that lose accuracy; run by name or by ``--fast-math`` only."""

ASSUME_FINITE = "select-optimization{assume-finite=true}"
"""Rewrites that assume finite values; run by name or by ``--assume-finite`` only."""

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
