"""Sizes inferred for the first iteration of a loop hold in later ones only if they stay equal.

Each model runs as it is and optimized, which would show a size of the first iteration that became a
constant.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt.ir import scope, text
from smelt.ir.shapes.inference import ShapeInference
from smelt.runtime.onnxruntime import OnnxRuntime

CONSTANTS = """<int64 n = {4}, bool t = {1}, int64 zero = {0}, int64 one = {1}, int64 ten = {10},
    int64[1] first = {0}, int64[1] second = {1}, int64[2] pair = {0, 1}, int64[2] swapped = {1, 0},
    int64[2] square = {2, 2}>"""

BODY = "body = b (int64 i, bool c, float[A,B] s) => (bool d, float[C,D] s2, float p)"
LOOPS = {
    "longer": f"""y, z = Loop(n, t, x) <{BODY} {{
        d = Identity(c) k = Shape(s) g = Gather(k, one) p = Cast<to=1>(g)
        s2 = Concat<axis=1>(s, s) }}>""",
    "until it is long": f"""y, z = Loop(n, t, x) <{BODY} {{
        k = Shape(s) g = Gather(k, one) d = Less(g, ten) p = Cast<to=1>(g)
        s2 = Concat<axis=1>(s, s) }}>""",
    "shorter": f"""y, z = Loop(n, t, w) <{BODY} {{
        d = Identity(c) e = Size(s) p = Cast<to=1>(e) k = Shape(s) g = Gather(k, second)
        s2 = Slice(s, second, g, second) }}>""",
    "swapped": f"""y, z = Loop(n, t, x) <{BODY} {{
        d = Identity(c) k = Shape(s) g = Gather(k, zero) p = Cast<to=1>(g)
        s2 = Transpose<perm=[1,0]>(s) }}>""",
    "reshaped by its own sizes": f"""y, z = Loop(n, t, x) <{BODY} {{
        d = Identity(c) k = Shape(s) g = Gather(k, swapped) s2 = Reshape(s, g)
        o = ConstantOfShape<value = float[1] {{1}}>(k) r = ReduceSum(o, first)
        q = Gather<axis=1>(r, zero) p = Squeeze(q) }}>""",
    "replaced by what is captured": f"""y, z = Loop(n, t, x) <{BODY} {{
        d = Identity(c) e = Size(s) p = Cast<to=1>(e) s2 = Identity(w) }}>""",
    "replaced by what has no known rank": f"""y, z = Loop(n, t, x) <{BODY.replace("[C,D]", "[]")} {{
        d = Identity(c) p = Cast<to=1>(i) a = Gather<axis=1>(w, pair) e = Squeeze(a, first)
        k = Cast<to=1>(ten) f = Less(e, k) u = Shape(w) g = Compress(u, f) s2 = Reshape(w, g) }}>""",
    "asked in a branch": f"""y, z = Loop(n, t, x) <{BODY} {{
        d = Identity(c) k = Shape(s) g = Gather(k, one) e = Equal(g, one)
        p = If(e) <then_branch = f () => (float u) {{ h = Size(s) u = Cast<to=1>(h) }},
            else_branch = m () => (float v) {{ j = Sub(g, ten) v = Cast<to=1>(j) }}>
        s2 = Concat<axis=1>(s, s) }}>""",
    "a branch that is not for the first round": f"""y, z = Loop(n, t, x) <{BODY} {{
        d = Identity(c) k = Shape(s) g = Gather(k, one) e = Equal(g, one) p = Cast<to=1>(g)
        r = If(e) <then_branch = f () => (float[E,F] u) {{ u = Identity(s) }},
            else_branch = m () => (float[G,H] v) {{ h = Concat<axis=0>(s, s)
                j = Gather<axis=1>(h, pair) v = Reshape(j, square) }}>
        s2 = Concat<axis=1>(s, s) }}>""",
    "grown in a loop within": f"""y, z = Loop(n, t, x) <{BODY} {{
        d = Identity(c) a = Loop(one, t, s) <body = l (int64 i2, bool c2, float[E,F] s3)
            => (bool d2, float[G,H] s4) {{ d2 = Identity(c2) s4 = Concat<axis=1>(s3, x) }}>
        k = Shape(a) g = Gather(k, one) p = Cast<to=1>(g) s2 = Identity(a) }}>""",
    "asked in a loop within": f"""y, z = Loop(n, t, x) <{BODY} {{
        d = Identity(c) h = CastLike(zero, x) p = Loop(n, t, h) <body = l (int64 i2, bool c2, float q)
            => (bool d2, float r) {{ d2 = Identity(c2) k = Size(s) u = Cast<to=1>(k) r = Add(q, u) }}>
        s2 = Concat<axis=0>(s, x) }}>""",
    "two states, the second made of the first": """y, v, z = Loop(n, t, x, x) <
        body = b (int64 i, bool c, float[1,1] s, float[1,1] o)
        => (bool d, float[C,D] s2, float[1,1] o2, float p) {
        d = Identity(c) k = Shape(o) g = Gather(k, one) p = Cast<to=1>(g)
        o2 = Identity(s) s2 = Concat<axis=1>(s, s) }>""",
    "rows of a scan": f"""y, z = Loop(n, t, x) <{BODY} {{
        d = Identity(c) a = Squeeze(x, first)
        e, f = Scan(a, s) <num_scan_inputs = 1, scan_input_axes = [1], body = l
            (float[1] q, float[I] row) => (float[1] q2, float[J] o) {{
                k = Size(s) u = Cast<to=1>(k) q2 = Add(q, u) o = Identity(row) }}>
        p = Squeeze(e) s2 = Concat<axis=0>(s, s) }}>""",
}
AFTER = """size = Shape(y) number = Cast<to=1>(size) filled = ConstantOfShape(size)
    wide = Add(filled, y)"""


def _model(loop: str, known: bool = True) -> ir.Model:
    start = "float[1,1] x, float[1,6] w" if known else "float[N,M] x, float[N,W] w"
    return text.parse(
        f"g ({start}) => (float[P,Q] wide, float[2] number, float[R] z) {CONSTANTS} {{"
        f" {LOOPS[loop]} {AFTER} }}",
        20,
    )


INPUTS = np.ones((1, 1), np.float32), np.arange(6, dtype=np.float32)[None]


def _check(result: ir.Model, source: ir.Model) -> None:
    expected = OnnxRuntime(source)(*INPUTS)
    for theirs, ours in zip(expected, OnnxRuntime(result)(*INPUTS), strict=True):
        np.testing.assert_array_equal(theirs, ours)


@pytest.mark.parametrize("loop", LOOPS)
def test_size_queries_in_a_loop_keep_their_results(loop: str) -> None:
    _check(smelt.optimize(_model(loop)), _model(loop))


@pytest.mark.parametrize("loop", LOOPS)
def test_bound_sizes(loop: str) -> None:
    sizes = {"N": 1, "M": 1, "W": 6}
    bound = smelt.compile(_model(loop, known=False), target="onnx", dims=sizes)
    for theirs, ours in zip(OnnxRuntime(_model(loop))(*INPUTS), bound(*INPUTS), strict=True):
        np.testing.assert_array_equal(theirs, ours)


@pytest.mark.parametrize("loop", LOOPS)
def test_other_sizes_in_the_same_model(loop: str) -> None:
    """Facts inferred for some sizes are erased before others, also constants."""
    model = _model(loop)
    shapes = ShapeInference(model)
    shapes.infer_model()
    shapes.restore_interface()
    for value in model.graph.inputs:
        value.shape = ir.Shape([value.shape[0], "Q"])
    computed = [v for node in scope.nodes(model) for v in node.outputs]
    assert not [
        v for v in computed if v.const_value is not None and v.producer().op_type != "Constant"
    ]
    _check(smelt.optimize(model), _model(loop))


def test_a_function_called_for_two_sizes() -> None:
    def model() -> ir.Model:
        return ir.from_onnx_text(
            """<ir_version: 10, opset_import: ["" : 20, "f" : 1]>
            g (float[1,1] x, float[1,6] w) => (float[P] u, float[Q] v) {
                u = f.Counted <axis = 1> (x)  v = f.Counted <axis = 0> (w) }
            <domain: "f", opset_import: ["" : 20]> Counted <axis> (x) => (z) {
                n = Constant<value = int64 {4}>()  t = Constant<value = bool {1}>()
                y, z = Loop(n, t, x) <body = b (int64 i, bool c, float[A,B] s)
                    => (bool d, float[C,D] s2, float p) {
                    d = Identity(c) k = Size(s) p = Cast<to=1>(k)
                    s2 = Concat<axis: int = @axis>(s, s) }> }"""
        )

    _check(smelt.optimize(model()), model())


def test_ranks_that_bodies_declare_are_kept() -> None:
    """ONNX Runtime rejects a Scan whose body leaves the rank of a stacked output open."""

    def model() -> ir.Model:
        return text.parse(
            f"""g (float[1,1] x, float[1,6] w) => (float[P,Q] y, float[R,S,T,U] z) {CONSTANTS} {{
            a = Gather<axis=1>(w, pair) e = Squeeze(a, first) k = Cast<to=1>(ten) f = Less(e, k) u = Shape(x)
            sizes = Compress(u, f)
            y, z = Loop(n, t, x) <body = b (int64 i, bool c, float[A,B] s)
                => (bool d, float[C,D] s2, float[E,F,H] p) {{
                d = Identity(c) s2 = Reshape(s, sizes)
                q, p = Scan(x, w) <num_scan_inputs = 1, scan_input_axes = [1], body = l
                    (float[G,H] state, float[I] row) => (float[J,K] state2, float[L,M] out) {{
                        out = Reshape(row, sizes) state2 = Identity(state) }}> }}> }}""",
            20,
        )

    _check(smelt.optimize(model()), model())
    _check(smelt.compile(model(), target="ort").model, model())
