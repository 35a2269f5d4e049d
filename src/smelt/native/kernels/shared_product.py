"""A matrix product as one C function that all layers of a small library share.

The sizes are arguments, so that ten products need one function and ten tables. Four columns at a
time read each element of the left operand once.
"""

from __future__ import annotations

from collections.abc import Sequence

from smelt.native.kernels.kernel import KernelContext

SIZES = 10
"""The numbers of a product in its table: m, n, k, am, ak, bk, bn, cm, cn, and 1 for a Relu."""

FOUR = range(4)


def sizes_table(cx: KernelContext, sizes: Sequence[int]) -> str:
    """Return the C name of a constant table of ``sizes`` in the body."""
    cx.body.line(f"static const ptrdiff_t sizes[] = {{ {', '.join(map(str, sizes))} }};")
    return "sizes"


def function(cx: KernelContext, contiguous: bool) -> str:
    """Return the name of the C function of a product with strides, or along contiguous sums.

    ``bias`` has one number per column, or is NULL.

    ```
    static void product_float_contiguous(const ptrdiff_t *by, const float *a, const float *b,
        const float *bias, float *c)
    ```
    """
    type_ = cx.type(0).name
    name = f"product_{type_}_{'contiguous' if contiguous else 'strided'}"
    step_a, step_b = ("1", "1") if contiguous else ("ak", "bk")
    strides = "" if contiguous else "const ptrdiff_t ak = by[4], bk = by[5];"
    pointers = " ".join(f"const {type_} *b{q} = column + {q} * bn;" for q in FOUR)
    starts = " ".join(f"{type_} s{q} = bias ? bias[n - rest + {q}] : 0;" for q in FOUR)
    reads = " ".join(f"s{q} += v * *b{q}; b{q} += {step_b};" for q in FOUR)
    stores = " ".join(f"to[{q} * cn] = s{q} < least ? least : s{q};" for q in FOUR)
    text = f"""\
static void {name}(const ptrdiff_t *by, const {type_} *a, const {type_} *b, const {type_} *bias,
    {type_} *c)
{{
    const ptrdiff_t n = by[1], kn = by[2], bn = by[6], cn = by[8];
    {strides}
    const {type_} least = by[9] ? 0 : -({type_})INFINITY;
    for (ptrdiff_t i = 0; i < by[0]; ++i) {{
        {type_} *to = c + i * by[7];
        const {type_} *const row = a + i * by[3], *column = b;
        ptrdiff_t rest = n;
        for (; rest >= 4; rest -= 4, column += 4 * bn, to += 4 * cn) {{
            const {type_} *left = row;
            {pointers}
            {starts}
            for (ptrdiff_t k = kn; k > 0; --k) {{
                const {type_} v = *left;
                left += {step_a};
                {reads}
            }}
            {stores}
        }}
        for (rest = n & 3; rest > 0; --rest, column += bn, to += cn) {{
            const {type_} *left = row, *right = column;
            {type_} sum = bias ? bias[n - rest] : 0;
            for (ptrdiff_t k = kn; k > 0; --k) {{
                sum += *left * *right;
                left += {step_a};
                right += {step_b};
            }}
            *to = sum < least ? least : sum;
        }}
    }}
}}
"""
    return cx.call(name, text)
