"""The element types that each MIL operator supports, as Core ML documents them for iOS 16 and 17.

The tables hold operators whose types are not the default: float16, float32 and int32.
"""

from __future__ import annotations

from smelt.mlpackage.program import Element

FLOATS = frozenset({Element.FLOAT16, Element.FLOAT32})
NUMBERS = FLOATS | {Element.INT32}
WITH_BOOL = NUMBERS | {Element.BOOL}
SMALL = frozenset({Element.INT8, Element.UINT8, Element.INT16, Element.UINT16})

_FLOATS_ONLY = """
acos asin atan atanh avg_pool batch_norm ceil clip conv conv_transpose cos cosh depth_to_space elu
erf exp floor gelu gru instance_norm layer_norm leaky_relu local_response_norm log lstm max_pool pad
pixel_shuffle prelu relu resample rnn round rsqrt scaled_dot_product_attention sigmoid sigmoid_hard
silu sin sinh softmax softplus softsign space_to_depth sqrt tan tanh
"""
_WITH_BOOL = "band_part fill non_zero select shape split tile concat stack identity"
_MOVES = """
cast expand_dims reshape reverse reverse_sequence slice_by_index squeeze transpose slice_update
"""
_GATHERS = "gather gather_along_axis gather_nd topk"
_BOOL_ONLY = "logical_and logical_or logical_xor logical_not"

_DOMAINS: dict[str, frozenset[Element]] = {
    **dict.fromkeys(_FLOATS_ONLY.split(), FLOATS),
    **dict.fromkeys(_WITH_BOOL.split(), WITH_BOOL),
    **dict.fromkeys(_MOVES.split(), WITH_BOOL),
    **dict.fromkeys(_BOOL_ONLY.split(), frozenset({Element.BOOL})),
}
_DOMAINS_17: dict[str, frozenset[Element]] = {
    **dict.fromkeys(_MOVES.split(), WITH_BOOL | SMALL),
    **dict.fromkeys(_GATHERS.split(), NUMBERS | SMALL),
    "quantize": FLOATS,
    "dequantize": frozenset({Element.INT8, Element.UINT8}),
}
FLOAT32_ONLY_BEFORE_17 = frozenset({"gru", "lstm", "rnn"})

DATA = frozenset({"x", "y", "a", "b", "data", "updates", "input", "value", "query", "values"})
"""The parameters to which these types apply; others, such as axes, have types of their own."""


def domain_of(op_type: str, ios: int) -> frozenset[Element]:
    """Return the element types that operands of a MIL operator may have on iOS ``ios``."""
    if ios < 17 and op_type in FLOAT32_ONLY_BEFORE_17:
        return frozenset({Element.FLOAT32})
    if ios >= 17 and op_type in _DOMAINS_17:
        return _DOMAINS_17[op_type]
    return _DOMAINS.get(op_type, NUMBERS)
