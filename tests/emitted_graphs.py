"""Graphs of ``python -m emitted`` that no table of tests has by one key."""

from __future__ import annotations

import numpy as np
from dot_cases import DotCase, dot_cases
from native.rewrite.test_fuse_reductions import APART, JOINED, reduced
from native.rewrite.test_read_slices import LEFT, NUMBERS, READ
from native.rewrite.test_row_bands import network
from native.test_formulas import FORMULAS as FUNCTIONS
from native.test_formulas import graph as formula
from native.test_quantized_bias import CASES as BIASES
from native.test_quantized_bias import graph_of as biased
from native.test_quantized_bias import name_of, values_of
from native.test_quantized_dot import CASES as PRODUCTS
from native.test_quantized_dot import COMPUTED, case_values
from native.test_quantized_dot import graph as product
from program.lower.test_dropout import CASES as DROPPED
from program.passes import test_quantized_groups as groups
from program.passes import test_quantized_lookups as lookups
from sized_library import Sized

from smelt import operators


def contraction(case: DotCase) -> str:
    """Return the graph of a contraction of two inputs."""
    dims = case.dims
    groups = {
        "lhs_contracting": dims.lhs_contracting,
        "rhs_contracting": dims.rhs_contracting,
        "lhs_batch": dims.lhs_batch,
        "rhs_batch": dims.rhs_batch,
    }
    listed = ", ".join(f"{name}={[*axes]}" for name, axes in groups.items() if axes)
    lhs, rhs = (",".join(map(str, case.shape(side))) for side in (case.lhs, case.rhs))
    return f"g (float[{lhs}] x, float[{rhs}] w) => (y) {{ y = smelt.DotGeneral<{listed}>(x, w) }}"


FEWER = 59
"""One of so many contractions is emitted."""

GROUPS = {
    f"{name} {kind}": Sized(groups.graph_of(name, kind), {}, groups.values_of(name, kind))
    for name in groups.GROUPS
    for kind in groups.KINDS
}
LOOKUPS = {
    f"{name} {scale}": Sized(
        lookups.HEAD + lookups.X + graph + lookups.Y,
        {},
        {"s": lookups.SCALES[scale], "z": np.uint8(117), "t": lookups.STEP, "u": np.int8(3)},
    )
    for name, (graph, _) in lookups.GRAPHS.items()
    for scale in lookups.SCALES
}
QUANTIZED_PRODUCTS = {
    " ".join(map(str, key)): Sized(product(m, k, n, kind), {}, case_values(k, n, kind, zero))
    for key, (m, k, n, kind, zero) in PRODUCTS.items()
}
QUANTIZED_BIASES = {
    name_of(*case): Sized(biased(*case[:2]), {}, values_of(*case)) for case in BIASES
}
INTEGER_PRODUCTS = {
    name: f"g ({ports}) => (y) {{ y = MatMulInteger({given}) }}"
    for name, (ports, given) in COMPUTED.items()
}
REDUCED = {
    f"{op} of {name}": reduced(*sizes, op)
    for name, sizes in (JOINED | APART).items()
    for op in ("ReduceSum", "ReduceMax", "ReduceMean", "ReduceLogSum")
}
SLICES = {name: each[0].replace("NUMBERS", NUMBERS) for name, each in (READ | LEFT).items()}
DROPOUT = {
    name: f"g ({head}) => (float[2,3] y, bool[2,3] m) {{ {body} }}"
    for name, (head, body) in DROPPED.items()
}
SEMIRINGS = {
    name: "g (float[5,20] x, float[20,9] w, double[3,4,17] u, double[17,3] v) => (y, z) "
    f'''{{ y = smelt.DotGeneral<lhs_contracting=[1], rhs_contracting=[0], semiring="{name}">(x, w)
    z = smelt.DotGeneral<lhs_contracting=[2], rhs_contracting=[0], semiring="{name}">(u, v) }}'''
    for name in ("max_plus", "min_plus", "max_times", "max_min", "min_max", "log_sum_exp")
}
FORMULAS = {name: formula(name, "double") for name in FUNCTIONS}
DOTS = {str(case): contraction(case) for case in [*dot_cases()][::FEWER]}
OTHERS = {
    "images": network(),
    "images, deep": network(deep=True),
    "Det": "g (float[2,3,3] x, double[5,5] w) => (y, z) { y = Det(x) z = Det(w) }",
    "Threefry": "g (uint32[7] a, uint32[7] b, uint32[7] c, uint32[7] d) => (y, z) "
    "{ y, z = smelt.Threefry2x32(a, b, c, d) }",
    "LogSumExp": "g (float[5,40] x, double[3,4,9] w) => (y, z) { y = ReduceLogSumExp<keepdims=0>(x, a) "
    "z = ReduceLogSumExp(w, a) a = Constant<value_ints=[1]>() }",
    "NonZero": "g (float[3,4] x) => (int64[2,N] y) { y = NonZero(x) }",
    "Unique": "g (float[9] x) => (float[N] y, int64[N] i, int64[9] j, int64[N] c) { y, i, j, c = Unique<axis=0>(x) }",
    "batch norm in training": "g (float[4,3,5] x, float[3] s, float[3] b, float[3] m, float[3] v) => (y, p, q) "
    "{ y, p, q = BatchNormalization<training_mode=1>(x, s, b, m, v) }",
    "a crop and a pad": "g (float[7,4] x) => (y) { n = Constant<value_ints=[4,7]>() y = CenterCropPad(x, n) }",
    "powers": "g (float[3,17] x) => (a, b, c, d) { p = Constant<value_float=3.0>() h = Constant<value_float=0.5>() "
    "m = Constant<value_float=-2.0>() n = Constant<value_float=1.7>() a = Pow(x, p) b = Pow(x, h) "
    "c = Pow(x, m) d = Pow(x, n) }",
    **{
        f"rows of {n} quantized": f"g (float[3,{n}] x, float[3] s, int8[3] z) => (int8[3,{n}] y) "
        "{ y = QuantizeLinear<axis=0>(x, s, z) }"
        for n in (15, 16, 33)
    },
    "bits": "g (float[5] x, int32[6] w) => (int32[5] y, float[6] z) { y = BitCast<to=6>(x) z = BitCast<to=1>(w) }",
    "largest numbers": "g (float[3,40] x, int64 n) => (a, i, float[3,K] b, int64[3,K] j) { k = Constant<value_ints=[5]>() "
    "a, i = TopK(x, k) s = Constant<value_ints=[1]>() r = Reshape(n, s) b, j = TopK<largest=0>(x, r) }",
    "many largest numbers": "g (float[2,300] x) => (a, i) { k = Constant<value_ints=[200]>() a, i = TopK(x, k) }",
}


def of_matrices(call: str) -> str:
    """Return the graph of an operator of matrices, ``LU float[2,3,3]``, all of the same shape."""
    name, ports = call.split(" ")
    operator = operators.find("smelt", name.partition("<")[0])
    assert operator is not None
    inputs = [f"{ports} {each}" for each in operator.inputs]
    if name == "HouseholderProduct":
        inputs[1] = f"{ports.rpartition(',')[0]}] taus"
    results, given = ", ".join(operator.outputs), ", ".join(operator.inputs)
    return f"g ({', '.join(inputs)}) => ({results}) {{ {results} = smelt.{name}({given}) }}"
