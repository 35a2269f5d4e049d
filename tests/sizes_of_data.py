"""Models whose sizes data decide, each with inputs for several runs."""

from __future__ import annotations

import numpy as np

Feeds = tuple[tuple[np.ndarray, ...], ...]


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def boxes(count: int) -> np.ndarray:
    return np.sort(np.random.default_rng(count).random((1, count, 4)).astype(np.float32), -1)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def number(value: int) -> np.ndarray:
    return np.array(value, np.int64)


def truth(value: bool) -> np.ndarray:
    return np.array(value)


FOUND: dict[str, tuple[str, Feeds]] = {
    "coordinates": (
        "g (float[B,4] x) => (int64[2,N] y) { z = Relu(x) y = NonZero(z) }",
        ((floats(3, 4),), (floats(2, 4),), (np.zeros((2, 4), np.float32),), (floats(0, 4),)),
    ),
    "a product of what is found": (
        "g (float[12] x, float[1,3] w) => (float[N,3] l) { a = Constant<value_ints=[0]>() "
        "o = Constant<value_ints=[1]>() z = Relu(x) i = NonZero(z) r = Squeeze(i, a) "
        "v = Gather(x, r) u = Unsqueeze(v, o) l = MatMul(u, w) }",
        ((floats(12), floats(1, 3)), (floats(12, seed=1), floats(1, 3))),
    ),
    "rows by a condition": (
        "g (float[5,3] x, bool[5] c) => (float[N,3] y, float[N] s) { y = Compress<axis=0>(x, c) "
        "a = Constant<value_ints=[1]>() s = ReduceSum<keepdims=0>(y, a) }",
        ((floats(5, 3), floats(5) > 0), (floats(5, 3), floats(5) > 9)),
    ),
    "elements by a condition": (
        "g (float[2,3] x, bool[K] c) => (float[N] y) { y = Compress(x, c) }",
        ((floats(2, 3), np.array([True, False, True, True])),),
    ),
    "different numbers": (
        "g (float[B] x) => (float[N] y, int64[N] i, int64[B] v, int64[N] c) "
        "{ r = Round(x) y, i, v, c = Unique(r) }",
        ((floats(7),), (floats(20),), (floats(1),)),
    ),
    "different rows in their order": (
        "g (int64[2,B] x) => (int64[2,N] y, int64[M] v) { y, i, v = Unique<axis=1,sorted=0>(x) }",
        ((np.array([[3, 1, 3, 0], [5, 2, 5, 0]]),),),
    ),
    "the best of the boxes": (
        "g (float[1,B,4] b, float[1,2,B] s) => (float[K] t, float[K,4] y) "
        "{ m = Constant<value_ints=[3]>() o = Constant<value_floats=[0.3]>() "
        "two = Constant<value_int=2>() z = Constant<value_ints=[0]>() "
        "most = Constant<value_ints=[4]>() k = NonMaxSuppression(b, s, m, o) v = GatherND(s, k) "
        "c = Gather<axis=1>(k, two) f = Squeeze(b, z) g = Gather(f, c) n = Shape(v) "
        "l = Min(n, most) t, i = TopK(v, l) y = Gather(g, i) }",
        ((boxes(6), floats(1, 2, 6)), (boxes(9), floats(1, 2, 9))),
    ),
    "two that are joined": (
        "g (float[A] x, float[B] y) => (float[N] o) { z = Constant<value_ints=[0]>() "
        "p = Relu(x) i = NonZero(p) q = Relu(y) j = NonZero(q) c = Concat<axis=1>(i, j) "
        "s = Squeeze(c, z) o = Cast<to=1>(s) }",
        ((floats(5), floats(7)), (floats(3), floats(2))),
    ),
    "a square as large as what is found": (
        "g (float[6] x) => (float[N,N] y) { z = Relu(x) i = NonZero(z) t = Transpose(i) "
        "j = MatMul(t, i) y = EyeLike<dtype=1>(j) }",
        ((floats(6),),),
    ),
    "half floats": (
        "g (float16[N,4] x, bool[N] m) => (float16[P,4] y) "
        "{ a = Compress<axis=0>(x, m) y = Softmax<axis=-1>(a) }",
        ((floats(4, 4).astype(np.float16), floats(4) > 0),),
    ),
}

TOLD: dict[str, tuple[str, Feeds]] = {
    "top k": (
        "g (float[B,6] x, int64[1] k) => (float[B,K] v, int64[B,K] i, float[B,K] e) "
        "{ v, i = TopK(x, k) e = Exp(v) }",
        ((floats(3, 6), ints(2)), (floats(1, 6), ints(6)), (floats(3, 6), ints(0))),
    ),
    "expand": (
        "g (float[1,4] x, int64[2] s) => (float[N,M] y) { y = Expand(x, s) }",
        ((floats(1, 4), ints(3, 4)), (floats(1, 4), ints(3, 1))),
    ),
    "tile": (
        "g (float[2,3] x, int64[2] s) => (float[N,M] y) { t = Tile(x, s) y = Relu(t) }",
        ((floats(2, 3), ints(3, 2)), (floats(2, 3), ints(0, 1))),
    ),
    "range": (
        "g (int64 a, int64 b, int64 d) => (int64[N] y, float[N] z) "
        "{ y = Range(a, b, d) c = Cast<to=1>(y) z = Sqrt(c) }",
        ((number(0), number(5), number(1)), (number(3), number(3), number(1))),
    ),
    "slice": (
        "g (float[B,6] x, int64[2] s, int64[2] e, int64[2] a, int64[2] t) => (float[N,M] z) "
        "{ y = Slice(x, s, e, a, t) z = Exp(y) }",
        (
            (floats(4, 6), ints(0, 1), ints(3, -1), ints(0, 1), ints(1, 2)),
            (floats(4, 6), ints(-1, 5), ints(-9, 0), ints(0, 1), ints(-1, -2)),
        ),
    ),
    "pad": (
        "g (float[4,5] x, int64[4] p) => (float[N,M] y) { y = Pad(x, p) }",
        ((floats(4, 5), ints(1, 0, 2, 3)), (floats(4, 5), ints(-1, 0, 0, -2))),
    ),
    "split": (
        "g (float[B,6] x, int64[2] n) => (float[B,N] y, float[B,M] z) { y, z = Split<axis=1>(x, n) }",
        ((floats(3, 6), ints(2, 4)), (floats(3, 6), ints(6, 0))),
    ),
    "resize": (
        'g (float[1,1,5,X] x, int64[4] n) => (float[1,1,N,M] y) { y = Resize<mode="linear">(x, , , n) }',
        ((floats(1, 1, 5, 4), ints(1, 1, 7, 3)), (floats(1, 1, 5, 6), ints(1, 1, 10, 12))),
    ),
    "reshape": (
        "g (float[B,6] x, int64[3] s) => (float[N,M,K] y) { z = Relu(x) y = Reshape(z, s) }",
        ((floats(4, 6), ints(2, 3, 4)), (floats(4, 6), ints(0, -1, 2))),
    ),
    "reshape, one size told": (
        "g (float[A,B] x, int64 k) => (float[P,Q] o) { a = Constant<value_ints=[0]>() "
        "m = Constant<value_ints=[-1]>() u = Unsqueeze(k, a) s = Concat<axis=0>(u, m) o = Reshape(x, s) }",
        ((floats(3, 4), number(2)), (floats(3, 4), number(6))),
    ),
    "ranks": (
        "g (float[B,6] x, int64[R] s) => (float[M] w, float y) { m = Constant<value_ints=[-1]>() "
        "z = Relu(x) r = Reshape(z, s) y = ReduceMax<keepdims=0>(r) w = Reshape(r, m) }",
        ((floats(4, 6), ints(2, 3, 4)), (floats(4, 6), ints(24))),
    ),
    "axes to squeeze": (
        "g (float[1,B,1] x, int64[K] a) => (float[N] w) { m = Constant<value_ints=[-1]>() "
        "s = Squeeze(x, a) e = Exp(s) w = Reshape(e, m) }",
        ((floats(1, 4, 1), ints(0)), (floats(1, 4, 1), ints(0, 2))),
    ),
    "axes to sum": (
        "g (float[B,3] x, int64[1] a) => (float[N] w) { s = ReduceSum<keepdims=0>(x, a) w = Neg(s) }",
        ((floats(4, 3), ints(0)), (floats(4, 3), ints(1))),
    ),
    "a constant": (
        "g (int64[2] s) => (float[N,M] y) "
        "{ c = ConstantOfShape<value=float[1] {2.5}>(s) y = Sqrt(c) }",
        ((ints(2, 3),), (ints(0, 3),)),
    ),
    "bands of a spectrum": (
        "g (int64 n, int64 l, int64 r, float a, float b) => (float[P,Q] y) "
        "{ y = MelWeightMatrix(n, l, r, a, b) }",
        (
            (number(8), number(16), number(8192), np.float32(0), np.float32(4096)),
            (number(40), number(512), number(16000), np.float32(20), np.float32(8000)),
        ),
    ),
    "one hot": (
        "g (int64[B] i, int64 d) => (float[B,N] y) "
        "{ v = Constant<value_floats=[0.0,1.0]>() y = OneHot(i, d, v) }",
        ((ints(0, 2, 1), number(4)), (ints(0), number(2))),
    ),
    "a crop of what is not empty": (
        "g (float[H,W] x) => (float[P,Q] y) { t = Constant<value_float=0.8>() "
        "a = Constant<value_ints=[1]>() one = Constant<value_ints=[1,1]>() m = Greater(x, t) "
        "n = NonZero(m) low = ReduceMin<keepdims=0>(n, a) high = ReduceMax<keepdims=0>(n, a) "
        "end = Add(high, one) y = Slice(x, low, end) }",
        ((floats(9, 9),), (floats(20, 30),)),
    ),
    "rows of a recurrence": (
        "g (float[T,B,3] x, int64[1] k) => (float[P,1,B,2] y) { v = Constant<value_float=0.1>() "
        "q = Constant<value_ints=[1,6,3]>() e = Expand(v, q) p = Constant<value_ints=[1,6,2]>() "
        "r = Expand(v, p) z = Constant<value_ints=[0]>() s = Slice(x, z, k) "
        "y, h = GRU<hidden_size=2>(s, e, r) }",
        ((floats(4, 2, 3), ints(2)), (floats(4, 1, 3), ints(4))),
    ),
}

OPEN: dict[str, tuple[str, Feeds]] = {
    "spectrum of an open axis": (
        "g (float[B,N,1] x) => (float[B,N,2] y) { a = Constant<value_int=1>() y = DFT(x, , a) }",
        ((floats(2, 8, 1),), (floats(1, 5, 1),)),
    ),
    "open dims that are 1 in a run": (
        "g (float[N,1,M] x) => (float[N,M] y) { y = Squeeze(x) }",
        ((floats(3, 1, 4),), (floats(1, 1, 4),), (floats(1, 1, 1),), (floats(0, 1, 1),)),
    ),
    "one scale for both axes": (
        "g (float[1,2,H,W] x) => (float[1,2,N,M] y) { n = Constant<value_ints=[6,9]>() "
        'y = Resize<axes=[2,3],mode="linear",keep_aspect_ratio_policy="not_larger">(x, , , n) }',
        ((floats(1, 2, 5, 4),), (floats(1, 2, 3, 8),)),
    ),
    "crop and pad": (
        "g (float[1,H,W] x) => (float[1,8,6] y) { n = Constant<value_ints=[8,6]>() "
        "y = CenterCropPad<axes=[1,2]>(x, n) }",
        ((floats(1, 5, 9),), (floats(1, 12, 3),)),
    ),
    "means without padding": (
        "g (float[1,2,H,W] x) => (float[1,2,P,Q] y) { y = AveragePool<kernel_shape=[3,3],"
        'strides=[2,2],auto_pad="SAME_UPPER",count_include_pad=0>(x) }',
        ((floats(1, 2, 7, 8),), (floats(1, 2, 6, 5),)),
    ),
    "places of maxima": (
        "g (float[1,2,H,W] x) => (float[1,2,P,Q] y, int64[1,2,P,Q] i) "
        '{ y, i = MaxPool<kernel_shape=[3,3],strides=[2,2],auto_pad="SAME_LOWER">(x) }',
        ((floats(1, 2, 7, 8),), (floats(1, 2, 6, 5),)),
    ),
}

FLOW: dict[str, tuple[str, Feeds]] = {
    "branches of two sizes": (
        "g (float[N] x, float[M] z, bool c) => (float[K] y) { r = If (c) "
        "<then_branch = t () => (float[N] a) { a = Relu(x) }, "
        "else_branch = e () => (float[M] b) { b = Neg(z) }> y = Exp(r) }",
        ((floats(3), floats(5), truth(True)), (floats(3), floats(5), truth(False))),
    ),
    "a scan over numbers in a branch": (
        "g (float[N] x, float[3] v, bool c) => (float[K] y, float[3] w) { y, w = If (c) "
        "<then_branch = t () => (float[N] a, float[3] s) { a, s = Scan<num_scan_inputs=1, "
        "body = b (float[N] p, float i) => (float[N] q, float r) "
        "{ k = Mul(p, x) q = Add(k, i) r = Mul(i, i) }>(x, v) }, "
        "else_branch = e () => (float[M] d, float[3] n) { d = Concat<axis=0>(x, x) n = Neg(v) }> }",
        ((floats(3), floats(3), truth(True)), (floats(2), floats(3), truth(False))),
    ),
    "branches of two ranks": (
        "g (float[N] x, float[2,M] z, bool c) => (float y) { r = If (c) "
        "<then_branch = t () => (float[N] a) { a = Relu(x) }, "
        "else_branch = e () => (float[2,M] b) { b = Neg(z) }> y = ReduceSum<keepdims=0>(r) }",
        ((floats(3), floats(2, 5), truth(True)), (floats(3), floats(2, 5), truth(False))),
    ),
    "what is found in a branch": (
        "g (float[N] x, int64 k) => (float[M] y) { two = Constant<value_int=2>() q = Less(k, two) "
        "y = If (q) <then_branch = t () => (float[A] a) { z = Constant<value_int=0>() "
        "q2 = Less(k, z) a = If (q2) <then_branch = t2 () => (float[N] a2) { a2 = Neg(x) }, "
        "else_branch = e2 () => (float[D] b2) { b2 = Concat<axis=0>(x, x) }> }, "
        "else_branch = e () => (float[C] b) { i = NonZero(x) zz = Constant<value_ints=[0]>() "
        "j = Squeeze(i, zz) b = Gather(x, j) }> }",
        (
            (floats(3), number(-1)),
            (floats(3), number(1)),
            (np.float32([0, 1, 2, 0]), number(7)),
        ),
    ),
    "as many rows as rounds": (
        "g (int64 n, float[2] x) => (float[2] o, float[N,2] rows) { t = Constant<value=bool {1}>() "
        "o, rows = Loop(n, t, x) <body = b (int64 i, bool c, float[2] s) => "
        "(bool d, float[2] e, float[2] r) { d = Identity(c) e = Add(s, s) r = Mul(e, s) }> }",
        ((number(3), floats(2)), (number(0), floats(2))),
    ),
    "a loop in a loop, both with states that grow": (
        "g (int64 n, float[N] x) => (float[K] y) { t = Constant<value=bool {1}>() "
        "y = Loop(n, t, x) <body = b (int64 i, bool c, float[A] s) => (bool d, float[B] e) { "
        "d = Identity(c) two = Constant<value_int=2>() w = Loop(two, t, x) <body = l "
        "(int64 j, bool f, float[C] v) => (bool h, float[D] z) { h = Identity(f) k = NonZero(v) "
        "q = Constant<value_int=0>() m = Gather(k, q) o = Gather(v, m) z = Concat<axis=0>(o, s) }> "
        "e = Concat<axis=0>(s, w) }> }",
        ((number(2), floats(3)), (number(0), floats(2)), (number(1), floats(1))),
    ),
    "rounds that data end": (
        "g (float x) => (float o, float[N] rows) { n = Constant<value_int=50>() "
        "t = Constant<value=bool {1}>() o, rows = Loop(n, t, x) <body = b (int64 i, bool c, float s) "
        "=> (bool d, float e, float r) { l = Constant<value=float {100.0}>() e = Add(s, s) "
        "d = Less(e, l) r = Identity(e) }> }",
        ((np.array(3, np.float32),), (np.array(200, np.float32),)),
    ),
    "a state that grows": (
        "g (int64 n, float[K] x) => (float[M] o) { t = Constant<value=bool {1}>() "
        "o = Loop(n, t, x) <body = b (int64 i, bool c, float[P] s) => (bool d, float[Q] e) "
        "{ d = Identity(c) e = Concat<axis=0>(s, x) }> }",
        ((number(3), floats(2)), (number(0), floats(2))),
    ),
    "a state that shrinks": (
        "g (float[K] x) => (float[M] o) { n = Constant<value_int=99>() "
        "t = Constant<value=bool {1}>() o = Loop(n, t, x) <body = b (int64 i, bool c, float[P] s) => "
        "(bool d, float[Q] e) { z = Constant<value_floats=[0.0]>() h = Constant<value_floats=[0.5]>() "
        "u = Constant<value_int=0>() g = Greater(s, z) y = Compress<axis=0>(s, g) e = Sub(y, h) "
        "q = Size(e) d = Greater(q, u) }> }",
        ((floats(9),), (floats(4),)),
    ),
    "experts": (
        "g (float[T,4] x, int64[T] e, float[3,4,4] w) => (float[T,4] y) { o = Constant<value_float=0.0>() "
        "acc = Mul(x, o) n = Constant<value_int=3>() t = Constant<value=bool {1}>() "
        "y = Loop(n, t, acc) <body = b (int64 i, bool c, float[T,4] s) => (bool d, float[T,4] o2) "
        "{ d = Identity(c) q = Equal(e, i) p = NonZero(q) z = Constant<value_ints=[0]>() "
        "k = Squeeze(p, z) r = Gather(x, k) wi = Gather(w, i) h = MatMul(r, wi) "
        "one = Constant<value_ints=[1]>() u = Unsqueeze(k, one) o2 = ScatterND(s, u, h) }> }",
        ((floats(6, 4), ints(0, 2, 1, 1, 0, 2), floats(3, 4, 4)),),
    ),
    "rows that broadcast": (
        "g (float[A] s, float[T,D] x, float[E] w) => (float[A] o, float[T,F] y) "
        "{ o, y = Scan<num_scan_inputs=1, body = b (float[A] a, float[D] i) => (float[A] c, float[F] d) "
        "{ c = Mul(a, a) d = Add(i, w) }>(s, x) }",
        (
            (floats(3), floats(4, 3), floats(3)),
            (floats(3), floats(4, 1), floats(5)),
            (floats(2), floats(4, 5), floats(1)),
        ),
    ),
    "rows backwards, of another axis": (
        "g (float[D] s, float[D,T] x, int64[1] k) => (float[D] o, float[D,P] y) "
        "{ z = Constant<value_ints=[0]>() one = Constant<value_ints=[1]>() v = Slice(x, z, k, one) "
        "o, y = Scan<num_scan_inputs=1, scan_input_axes=[1], scan_input_directions=[1], "
        "scan_output_axes=[1], scan_output_directions=[1], body = b (float[D] a, float[D] i) => "
        "(float[D] c, float[D] d) { c = Sub(i, a) d = Identity(c) }>(s, v) }",
        ((floats(2), floats(2, 5), ints(3)),),
    ),
}
