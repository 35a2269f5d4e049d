"""The choices of the target: equivalent forms of a computation, each a model of any size.

Each form is timed as users run it, with the graph optimizations of ONNX Runtime on, so its time
includes what the runtime makes of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import onnx_ir as ir

from smelt.ir import text

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Choice:
    """Forms that compute the same, and the sizes at which they are timed.

    ``interface`` and ``forms`` are ONNX text with sizes in braces. The first form is what a model
    contains before selection; the others may replace it.
    """

    name: str
    interface: str
    forms: Mapping[str, str]
    grid: Mapping[str, tuple[int, ...]]
    derived: Callable[[Sizes], Sizes] = dict

    def model(self, form: str, sizes: Sizes) -> ir.Model:
        """Return the model of ``form`` at these sizes, one for each axis of the grid."""
        filled = {**sizes, **self.derived(sizes)}
        return text.parse(f"g {self.interface} {{{{ {self.forms[form]} }}}}".format_map(filled))

    def cells(self) -> Iterator[dict[str, int]]:
        """Yield the sizes of each point of the grid."""
        for values in itertools.product(*self.grid.values()):
            yield dict(zip(self.grid, values, strict=True))


ROWS = (1, 16, 128, 512)
WIDTHS = (256, 1024)

_SUM = "(float[1,{rows},{width}] x, float[1,{rows},{width}] s, float[{width}] g, float[{width}] b)"
_ONE = "(float[1,{rows},{width}] x, float[{width}] b) => (float[1,{rows},{width}] y)"

RESIDUAL_LAYER_NORM = Choice(
    "residual-layer-norm",
    f"{_SUM} => (float[1,{{rows}},{{width}}] y)",
    {
        "Add": "r = Add(x, s) y = LayerNormalization(r, g, b)",
        "Sum": "r = Sum(x, s) y = LayerNormalization(r, g, b)",
    },
    {"rows": ROWS, "width": WIDTHS},
)
"""ONNX Runtime fuses an Add before a norm into SkipLayerNormalization, but not a Sum."""

SUM_LAYER_NORM = replace(
    RESIDUAL_LAYER_NORM, forms=dict(reversed(list(RESIDUAL_LAYER_NORM.forms.items())))
)
"""The same choice for models with a Sum, as pass ``sum-residuals`` writes it."""

BIAS_GELU = Choice(
    "bias-gelu",
    _ONE,
    {"Gelu": "a = Add(x, b) y = Gelu(a)", "BiasGelu": "y = com.microsoft.BiasGelu(x, b)"},
    {"rows": ROWS, "width": WIDTHS},
)

BIAS_GELU_BY_TANH = Choice(
    "bias-gelu-by-tanh",
    _ONE,
    {
        "Gelu": 'a = Add(x, b) y = Gelu<approximate = "tanh">(a)',
        "FastGelu": "y = com.microsoft.FastGelu(x, b)",
    },
    {"rows": ROWS, "width": WIDTHS},
)

SILU = Choice(
    "silu",
    "(float[1,{rows},{width}] x) => (float[1,{rows},{width}] y)",
    {
        "Sigmoid": "s = Sigmoid(x) y = Mul(x, s)",
        "QuickGelu": "y = com.microsoft.QuickGelu<alpha = 1.0>(x)",
    },
    {"rows": ROWS, "width": WIDTHS},
)

TRANSPOSED_PRODUCT = Choice(
    "transposed-product",
    "(float[1,8,{rows},{inner}] a, float[1,8,{columns},{inner}] b) "
    "=> (float[1,8,{rows},{columns}] y)",
    {
        "Transpose": "t = Transpose<perm = [0,1,3,2]>(b) y = MatMul(a, t)",
        "FusedMatMul": "y = com.microsoft.FusedMatMul<transB = 1>(a, b)",
    },
    {"rows": (1, 16, 128), "inner": (64,), "columns": (16, 128, 512)},
)


def _width(sizes: Sizes) -> Sizes:
    """Return the size of the timed example: its width over all heads."""
    return {"wide": sizes["heads"] * sizes["size"], "one": 1}


ATTENTION = Choice(
    "attention",
    "(float[1,{rows},{wide}] q, float[1,{keys},{wide}] k, float[1,{keys},{wide}] v) "
    "=> (float[1,{rows},{wide}] y)",
    {
        "Attention": "y = Attention<q_num_heads = {heads}, kv_num_heads = {heads}>(q, k, v)",
        "MultiHeadAttention": "y = com.microsoft.MultiHeadAttention<num_heads = {heads}>(q, k, v)",
    },
    {"rows": (1, 16, 128, 512), "keys": (16, 128, 512), "heads": (4, 12), "size": (32, 64)},
    _width,
)

CACHED_ATTENTION = Choice(
    "cached-attention",
    "(float[1,{rows},{wide}] q, float[1,{rows},{wide}] k, float[1,{rows},{wide}] v, "
    "float[1,{heads},{past},{size}] p, float[1,{heads},{past},{size}] r) "
    "=> (float[1,{rows},{wide}] y, float[1,{heads},T,{size}] n, float[1,{heads},T,{size}] w)",
    {
        "Attention": "y, n, w = Attention<q_num_heads = {heads}, kv_num_heads = {heads}>"
        "(q, k, v, , p, r)",
        "MultiHeadAttention": "y, n, w = com.microsoft.MultiHeadAttention<num_heads = {heads}>"
        "(q, k, v, , , , p, r)",
    },
    {"rows": (1, 16), "past": (16, 128, 512), "heads": (4, 12), "size": (32, 64)},
    _width,
)

CAPPED_ATTENTION = Choice(
    "capped-attention",
    "(float[1,{heads},{rows},64] q, float[1,{heads},{keys},64] k, float[1,{heads},{keys},64] v) "
    "=> (float[1,{heads},{rows},64] y)",
    {
        "Attention": "y = Attention<softcap = 50.0>(q, k, v)",
        "Tanh": """
            s = Constant<value_float = 0.125>() c = Constant<value_float = 50.0>()
            m = Mul(q, s) t = Transpose<perm = [0, 1, 3, 2]>(k) r = MatMul(m, t)
            d = Div(r, c) h = Tanh(d) n = Mul(h, c) w = Softmax(n) y = MatMul(w, v)
        """,
    },
    {"rows": (1, 16, 128, 512), "keys": (16, 128, 512), "heads": (4, 12)},
)
"""The Attention kernel computes a cap's Tanh element by element, the Tanh kernel in vectors."""

_FILLED = "ConstantOfShape<value = float[1] {{0.5}}>"

CHANNEL_AFFINE = Choice(
    "channel-affine",
    "(float[1,{channels},{pixels}] x) => (float[1,{channels},{pixels}] y)",
    {
        "Mul": f"""
            c = Constant<value_ints = [{{channels}}, 1]>() s = {_FILLED}(c) o = {_FILLED}(c)
            m = Mul(x, s) y = Add(m, o)
        """,
        "BatchNormalization": f"""
            c = Constant<value_ints = [{{channels}}]>() s = {_FILLED}(c) o = {_FILLED}(c)
            z = ConstantOfShape(c) w = {_FILLED.replace("0.5", "1.0")}(c)
            y = BatchNormalization<epsilon = 0.0>(x, s, o, z, w)
        """,
    },
    {"channels": (16, 128, 512), "pixels": (16, 256, 4096)},
)
"""Group norms end in a scale and an offset per channel: one pass over memory, or two."""

CHOICES = {
    choice.name: choice
    for choice in (
        RESIDUAL_LAYER_NORM,
        BIAS_GELU,
        BIAS_GELU_BY_TANH,
        SILU,
        TRANSPOSED_PRODUCT,
        ATTENTION,
        CACHED_ATTENTION,
        CAPPED_ATTENTION,
        CHANNEL_AFFINE,
    )
}
"""Every choice by name."""
