"""A graph of each operator on quantized numbers: name, node, element types and shapes.

``K`` stands for uint8 and int8 in turn. Scales are ``s`` and ``t``, zero points ``z`` and ``u``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from smelt.operators.onnxruntime.microsoft.declared import DOMAIN as M

ZEROS = {"uint8": (120, 90, 0), "int8": (-8, 5, -128)}
CONSTANTS = (
    "s = Constant<value_float=0.02531>() t = Constant<value_float=0.0371>() "
    "z = Constant<value=K {{{z}}}>() u = Constant<value=K {{{u}}}>() "
)
WEIGHTS = "b = Constant<value=K[3,2] {1,2,3,4,5,6}>() c = Constant<value=int32[2] {100,-300}>() "
COLUMNS = (
    "bs = Constant<value=float[2] {0.5,0.25}>() bz = Constant<value=K[2] {1,0}>() "
    "f = Constant<value=float[2] {1,-3}>() "
)
ATTENDED = (
    f"f = Constant<value=float[24] {{{', '.join(f'{i / 16 - 1:.4f}' for i in range(24))}}}>() "
    "s = Constant<value_float=0.025>() t = Constant<value_float=0.002>() "
    "z = Constant<value=uint8 {120}>() u = Constant<value=int8 {3}>() "
)
SHARE = "r = Constant<value_float=0.00390625>() o = Constant<value=K {LOW}>() "

OF_BYTES = {
    "QLinearAveragePool": (
        "kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]>(x, s, z, t, u)",
        ("K[2,3,9,9] x", "K[2,3,5,5]"),
    ),
    "QLinearAveragePool of the padding": (
        "kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1>(x, s, z, t, u)",
        ("K[2,3,9,9] x", "K[2,3,9,9]"),
    ),
    "QLinearAveragePool of channels last": (
        'kernel_shape=[3,3], auto_pad="SAME_LOWER", strides=[2,2], channels_last=1>(x, s, z, t, u)',
        ("K[2,8,8,3] x", "K[2,4,4,3]"),
    ),
    "QLinearAveragePool beyond the end": (
        "kernel_shape=[2,2], strides=[2,2], ceil_mode=1>(x, s, z, t, u)",
        ("K[2,3,9,9] x", "K[2,3,5,5]"),
    ),
    "QLinearGlobalAveragePool": (">(x, s, z, t, u)", ("K[2,3,9,9] x", "K[2,3,1,1]")),
    "QLinearGlobalAveragePool of channels last": (
        "channels_last=1>(x, s, z, t, u)",
        ("K[2,9,9,3] x", "K[2,1,1,3]"),
    ),
    "QLinearConcat": (
        "axis=1>(t, u, x, s, z, w, t, u, v, t, z)",
        ("K[2,3] x, K[2,2] w, K[2,4] v", "K[2,9]"),
    ),
    "QLinearWhere": (
        ">(c, x, s, z, w, t, u, t, z)",
        ("bool[2,1] c, K[2,3] x, K[3] w", "K[2,3]"),
    ),
    "QLinearSoftmax": ("opset=13>(x, s, z, r, o)", ("K[4,33] x", "K[4,33]"), SHARE),
    "QLinearSoftmax of an axis": (
        "opset=13, axis=1>(x, s, z, r, o)",
        ("K[4,33,3] x", "K[4,33,3]"),
        SHARE,
    ),
    "QLinearSoftmax of old": (
        "opset=11, axis=1>(x, s, z, r, o)",
        ("K[4,5,3] x", "K[4,5,3]"),
        SHARE,
    ),
    "NhwcMaxPool": (
        "kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]>(x)",
        ("K[2,9,9,3] x", "K[2,5,5,3]"),
    ),
    "QLinearConv": (
        "channels_last=1, kernel_shape=[3,3], pads=[1,1,1,1], group=3>(x, s, z, w, t, u, t, u)",
        ("K[2,7,7,3] x, K[6,1,3,3] w", "K[2,7,7,6]"),
    ),
    "QGemm": (">(x, s, z, b, t, u, c, t, u)", ("K[4,3] x", "K[4,2]"), WEIGHTS),
    "QGemm of scales in a list": (
        ">(x, l, m, b, l, m, c, t, u)",
        ("K[4,3] x", "K[4,2]"),
        WEIGHTS + "l = Constant<value=float[1] {0.025}>() m = Constant<value=K[1] {LOW}>() ",
    ),
    "QGemm to floats": ("alpha=0.5>(x, s, z, b, t, u, c)", ("K[4,3] x", "float[4,2]"), WEIGHTS),
    "QGemm of columns": (
        "transB=1>(x, s, z, w, bs, bz, c, t, u)",
        ("K[4,3] x, K[2,3] w", "K[4,2]"),
        WEIGHTS + COLUMNS,
    ),
    "MatMulIntegerToFloat": (
        ">(x, w, s, bs, z, bz, f)",
        ("K[4,3] x, K[3,2] w", "float[4,2]"),
        COLUMNS,
    ),
    "DynamicQuantizeMatMul": (
        ">(x, w, bs, bz, f)",
        ("float[4,3] x, K[3,2] w", "float[4,2]"),
        COLUMNS,
    ),
}
OTHERS = {
    "QAttention": f"(uint8[2,3,8] x, int8[8,24] w) => (float[2,3,8] y) {{ {ATTENDED} y = {M}.QAttention<num_heads=2>(x, w, f, s, t, , z, u) }}",
    "QAttention with a past": f"(uint8[2,3,8] x, uint8[8,24] w, float[2,2,2,4,4] past) => (float[2,3,8] y) {{ {ATTENDED} v = Constant<value=uint8 {{100}}>() y, n = {M}.QAttention<num_heads=2, unidirectional=1>(x, w, f, s, t, , z, v, past) }}",
    "MatMulInteger16": f"(int16[4,3] x, int16[3,2] w) => (int32[4,2] y) {{ y = {M}.MatMulInteger16(x, w) }}",
    "QuantizeLinear": f"(float[4,3] x) => (uint16[4,3] y) {{ s = Constant<value_float=0.00013>() z = Constant<value=uint16 {{3000}}>() y = {M}.QuantizeLinear(x, s, z) }}",
    "QuantizeLinear of columns": f"(float[4,3] x, float[3] s, int16[3] z) => (int16[4,3] y) {{ y = {M}.QuantizeLinear<axis=-1>(x, s, z) }}",
    "DequantizeLinear of half floats": f"(uint16[4,3] x, float16 s) => (float16[4,3] y) {{ y = {M}.DequantizeLinear(x, s) }}",
    "DequantizeLinear": f"(int16[4,3] x, float[3] s, int16[3] z) => (float[4,3] y) {{ y = {M}.DequantizeLinear<axis=1>(x, s, z) }}",
    "MatMulNBits of 2 bits": f"(float[3,40] a, uint8[5,3,4] w, float[15] s, uint8[5,1] z) => (float[3,5] y) {{ y = {M}.MatMulNBits<K=40, N=5, bits=2, block_size=16>(a, w, s, z) }}",
    "MatMulNBits of float zeros": f"(float[3,40] a, uint8[5,3,8] w, float[15] s, float[5,3] z) => (float[3,5] y) {{ y = {M}.MatMulNBits<K=40, N=5, block_size=16>(a, w, s, z) }}",
    **{
        f"GatherBlockQuantized of {bits} bits": f"(uint8[7,{6 * bits}] w, int64[2,3] i, float[7,3] s, uint8[7,{-(-3 * bits // 8)}] z) => (float[2,3,48] y) {{ y = {M}.GatherBlockQuantized<bits={bits}, block_size=16>(w, i, s, z) }}"
        for bits in (2, 4, 8)
    },
    "GatherBlockQuantized of no zeros": f"(uint8[7,24] w, int32[3] i, float[7,3] s) => (float[3,48] y) {{ y = {M}.GatherBlockQuantized<block_size=16>(w, i, s) }}",
}


def cases() -> Iterator[tuple[str, str]]:
    """Names, and graphs as ONNX text without a head."""
    yield from OTHERS.items()
    for kind, (z, u, low) in ZEROS.items():
        for name, (said, (ports, result), *more) in OF_BYTES.items():
            op = name.split()[0]
            constants = CONSTANTS.format(z=z, u=u) + "".join(more).replace("LOW", str(low))
            text = f"({ports}) => ({result} y) {{ {constants} y = {M}.{op}<{said} }}"
            yield f"{name}, {kind}", re.sub(r"\bK\b", kind, text).replace("<>", "")
