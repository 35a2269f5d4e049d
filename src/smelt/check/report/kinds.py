"""Sort operators into kinds, each with a colour, and say what a group of nodes computes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache

from smelt.operators.elementwise import ROWS

KINDS: Mapping[str, tuple[str, str]] = {
    "product": ("#2b6cb0", r"Conv|MatMul|Gemm|Gemv|Einsum|Dot|Dense|DeformConv|QGemm"),
    "attention": ("#5a48b5", r"Attention|RotaryEmbedding"),
    "normalization": (
        "#0f766e",
        r"Normaliz|LRN|InstanceNorm|BatchNorm|LayerNorm|GroupNorm|RMSNorm|Softmax|Lp(Norm|Pool)",
    ),
    "activation": (
        "#a03c78",
        r"Relu|Gelu|Elu|Selu|Celu|Sigmoid|Swish|Silu|Mish|^Tanh|Softplus|Softsign|Erf$|Clip|Shrink",
    ),
    "reduction": ("#85611a", r"Reduce|Pool|ArgM|TopK|CumSum|CumProd|NonMax|Unique"),
    "recurrence": ("#3b4252", r"LSTM|GRU|RNN|^If$|^Loop$|^Scan$|SequenceMap|While"),
    "quantization": ("#556b2f", r"[Qq]uantize|Cast|^QLinear|Bitcast"),
    "movement": (
        "#7a808a",
        r"Reshape|Transpose|[Ss]queeze|Concat|Split|Slice|Gather|Scatter|Expand|Tile|^Pad|Shape|Flatten"
        r"|Identity|Space|Resize|Upsample|Range|ConstantOf|Size|OneHot|EyeLike|Trilu|Compress"
        r"|GridSample|Roi|Reverse|NonZero|Sequence|Shuffle|Roll|Col2Im|Broadcast|Iota",
    ),
}
"""Each kind with its colour and the pattern of its operators; the first pattern that
matches counts.
"""

OTHER = ("elementwise", "other")
"""Kinds without a pattern: the rows of ``operators/elementwise``, then everything else."""

COLOURS = {name: colour for name, (colour, _) in KINDS.items()} | dict.fromkeys(OTHER, "#4b5f7a")
"""The colour of each kind; white text on it is legible."""

_PATTERNS = {name: re.compile(pattern) for name, (_, pattern) in KINDS.items()}


@cache
def kind_of(op: str) -> str:
    """Return the kind of the operator ``op``, which may begin with its domain."""
    name = op.rpartition(".")[2]
    for kind, pattern in _PATTERNS.items():
        if pattern.search(name):
            return kind
    return OTHER[0] if name in ROWS else OTHER[1]


def summary_of(operators: Counter[str]) -> str:
    """Return a few words for what nodes of these operators compute, such as ``attention +
    feed-forward``.

    If no operator hints at a known layer, return the two most frequent operators.
    """
    counts = Counter({op.rpartition(".")[2]: count for op, count in operators.items()})
    kinds: Counter[str] = Counter()
    for op, count in counts.items():
        kinds[kind_of(op)] += count
    products = kinds["product"]
    convolves = any("Conv" in op for op in counts)
    normalizes = counts["Softmax"] > 0 or (counts["Exp"] > 0 and counts["ReduceSum"] > 0)
    attends = kinds["attention"] > 0 or (normalizes and products >= 2)
    is_present = {
        "convolution": convolves,
        "recurrence": any(counts[op] for op in ("LSTM", "GRU", "RNN")),
        "attention": attends,
        "feed-forward": bool(
            not convolves and products >= (3 if attends else 1) and kinds["activation"]
        ),
        "projection": bool(not convolves and not attends and products and not kinds["activation"]),
    }
    layers = [name for name, present in is_present.items() if present]
    if not layers and kinds["normalization"]:
        layers = ["embedding" if counts["Gather"] else "normalization"]
    if layers:
        return " + ".join(layers)
    most_frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:2]
    return ", ".join(op if count == 1 else f"{count} {op}" for op, count in most_frequent)
