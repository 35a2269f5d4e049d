"""Mistakes in passes that fuse: a bias forgotten, a sign lost, an attribute not looked at."""

from __future__ import annotations

from mutants.shown import Shown

SHOWN = [
    Shown(
        "guard-padded-maximum",
        "passes.convolution.guard_padded_maximum:pool_of_zeros",
        'any(opset.attribute(pool, "pads", m.opset) or ())',
        "False",
        "g (float[1,1,N,M] x) => (float[1,1,A,B] y) <int64[8] pads = {0,0,1,1,0,0,1,1}> "
        "{ p = Pad(x, pads) y = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(p) }",
    ),
    Shown(
        "fuse-dilated-conv",
        "passes.convolution.fuse_dilated_conv:_crops",
        "not any(p < c for p, c in zip(pads, crops, strict=True))",
        "True",
        "g (float[N, 7, 9, 2] x) => (float[N, 7, 9, 4] y) <float[4,2,3,2] w = "
        "{0.89,0.76,0.038,0.454,0.556,0.227,-0.539,1.496,0.473,1.082,1.145,0.03,-0.028,0.164,0.163,0.416,-0.211,-0.042,0.243,-0.266,1.466,-0.375,0.249,0.115,0.87,-0.728,0.841,-0.265,1.105,1.089,0.661,0.187,0.94,0.848,0.613,0.346,0.256,1.279,0.418,0.523,1.202,-0.099,-0.208,0.73,0.567,0.837,-0.479,0.922}, "
        "float[4] bias = {1,2,3,4}> { p = Constant<value_ints=[0, 2, 2, 0, 0, 3, "
        "1, 0]>() h = Constant<value_float=1.0>() one = CastLike(h, x) a = "
        "Pad(x, p, one) b1 = Constant<value_ints=[-1, 6, 2, 6, 2, 2]>() b2 = "
        "Constant<value_ints=[-1, 6, 6, 2]>() b3 = Reshape(a, b1) b4 = "
        "Transpose<perm=[2, 4, 0, 1, 3, 5]>(b3) b = Reshape(b4, b2) i = "
        "Transpose<perm=[0, 3, 1, 2]>(b) c = Conv(i, w) d = Transpose<perm=[0, "
        "2, 3, 1]>(c) e1 = Constant<value_ints=[2, 2, -1, 4, 5, 4]>() e2 = "
        "Constant<value_ints=[-1, 8, 10, 4]>() e3 = Reshape(d, e1) e4 = "
        "Transpose<perm=[2, 3, 0, 4, 1, 5]>(e3) e = Reshape(e4, e2) s = "
        "Constant<value_ints=[0, 1]>() t = Constant<value_ints=[-1, "
        "2147483647]>() u = Constant<value_ints=[1, 2]>() y = Slice(e, s, t, u) }",
    ),
    Shown(
        "fuse-pad-conv",
        "passes.convolution.fuse_pad_conv:_spatial_pads",
        'opset.attribute(node, "mode", m.opset) != "constant"',
        "False",
        "g (float[N,2,6] x) => (float[N,?,?] y) <float[4,2,3] w = "
        "{-0.658,-0.738,0.619,-0.826,0.331,0.198,-0.238,0.06,-0.592,1.472,0.627,0.116,-0.543,1.14,-0.873,1.278,-0.936,0.503,1.01,-0.669,0.812,1.36,1.169,0.595}, "
        'int64[6] pads = {0,0,1,0,0,2}> { p = Pad<mode="reflect">(x, pads) y = '
        "Conv(p, w) }",
    ),
    Shown(
        "drop-taps-in-padding",
        "passes.convolution.drop_taps_in_padding:taps_in_padding",
        "slice(each.start, each.stop) for each in taps",
        "slice(0, len(each)) for each in taps",
        "g (float[N,1,3] x) => (float[N,1,3] y) <float[1,1,3] w = {1,2,3}> "
        "{ y = Conv<pads=[5,5], dilations=[5]>(x, w) }",
    ),
    Shown(
        "fuse-conv-batchnorm",
        "passes.convolution.fuse_conv_batchnorm:conv_batchnorm",
        "scale / np.sqrt(variance + np.float64(np.float32(epsilon)))",
        "scale * np.sqrt(variance + np.float64(np.float32(epsilon)))",
        "g (float[N,2,6] x) => (float[N,4,?] y) <float[4,2,3] w = "
        "{-0.658,-0.738,0.619,-0.826,0.331,0.198,-0.238,0.06,-0.592,1.472,0.627,0.116,-0.543,1.14,-0.873,1.278,-0.936,0.503,1.01,-0.669,0.812,1.36,1.169,0.595}, "
        "float[4] scale = {-0.894,0.587,-0.611,1.185}, float[4] shift = "
        "{1.144,-0.596,-0.121,1.429}, float[4] mean = "
        "{-0.965,0.509,-0.583,-0.346}, float[4] variance = "
        "{0.739,1.254,1.266,1.073}> { c = Conv(x, w) y = "
        "BatchNormalization<epsilon=0.001>(c, scale, shift, mean, variance) }",
    ),
    Shown(
        "fuse-conv-scale",
        "passes.convolution.fuse_conv_scale:conv_times",
        "None if conv.bias is None else bias",
        "None",
        "g (float[N,2,6] x) => (float[N,4,?] y) <float[4,2,3] w = "
        "{-0.658,-0.738,0.619,-0.826,0.331,0.198,-0.238,0.06,-0.592,1.472,0.627,0.116,-0.543,1.14,-0.873,1.278,-0.936,0.503,1.01,-0.669,0.812,1.36,1.169,0.595}, "
        "float[4,1] s = {0.999,1.341,0.869,0.89}, float[4] b = "
        "{1.179,0.404,-0.824,0.892}> { c = Conv(x, w, b) y = Mul(c, s) }",
    ),
    Shown(
        "fuse-conv-scale",
        "passes.convolution.fuse_conv_scale:conv_of_scaled",
        "factor.reshape(groups, 1, -1)",
        "factor[::-1].reshape(groups, 1, -1)",
        "g (float[N,4,6] x) => (float[N,2,?] y) <float[2,4,1] w = "
        "{-0.658,-0.738,0.619,-0.826,0.331,0.198,-0.238,0.06}, "
        "float[4,1] s = {0.999,1.341,0.869,0.89}> { a = Mul(x, s) y = Conv(a, w) }",
    ),
    Shown(
        "fuse-conv-bias",
        "passes.convolution.fuse_conv_bias:conv_plus",
        '-1.0 if m.root.op_type == "Sub" else 1.0',
        "1.0",
        "g (float[N,2,6] x) => (float[N,4,?] y) <float[4,2,3] w = "
        "{-0.658,-0.738,0.619,-0.826,0.331,0.198,-0.238,0.06,-0.592,1.472,0.627,0.116,-0.543,1.14,-0.873,1.278,-0.936,0.503,1.01,-0.669,0.812,1.36,1.169,0.595}, "
        "float[4,1] t = {0.241,0.434,1.384,-0.853}> { c = Conv(x, w) y = Sub(c, "
        "t) }",
    ),
    Shown(
        "einsum-to-matmul",
        "passes.products.einsum_to_matmul:_moved",
        "[labels.index(label) for label in to]",
        "[to.index(label) for label in labels]",
        "g (float[3,3,3] x, float[3,3,3] w) => (float[3,3,3] y) { y = "
        'Einsum<equation="bij,bjk->kbi">(x, w) }',
    ),
    Shown(
        "fuse-transpose-matmul",
        "passes.products.fuse_transpose_matmul:_gemm",
        "[] if bias is None else [bias]",
        "[]",
        "g (float[3,3] a, float[3,3] b, float[3] c) => (float[3,3] y) { t = "
        "Transpose(b) y = Gemm<alpha=0.5, beta=2.0, transA=1>(a, t, c) }",
    ),
    Shown(
        "unflatten-matmul",
        "passes.products.unflatten_matmul:_product_of_gemm",
        'opset.attribute(gemm, "alpha", m.opset) != 1',
        "False",
        "g (float[B,3,4] x) => (float[B,3,2] y) <float[4,2] w = "
        "{1,2,3,4,5,6,7,8}, float[2,4] wt = {1,2,3,4,5,6,7,8}, float[2] b = "
        "{1,-1}, float[1,2] b2 = {1,-1}, float[2,2] v = {1,2,3,4}, int64[2] flat "
        "= {-1,4}, int64[3] back = {-1,3,2}, int64[4] apart = {-1,3,2,1}, "
        "int64[3] other = {3,-1,2}, float s = {2}> { r = Reshape(x, flat) p = "
        "Gemm<alpha=2.0>(r, w) y = Reshape(p, back) }",
    ),
    Shown(
        "unmerge-matmul",
        "passes.products.unmerge_matmul:_Lift.may",
        "axis in (-1, 2)",
        "axis",
        "g (float[B,3,5,8] q) => (float[B,3,5,5] y) <int64[3] rows = {-1,5,8}, "
        "int64[4] apart = {-1,3,5,5}> { m = Reshape(q, rows) t = Transpose<perm=[0,2,1]>(m) "
        "s = MatMul(m, t) p = Softmax<axis=1>(s) y = Reshape(p, apart) }",
    ),
    Shown(
        "fuse-matmul-weight-bias",
        "passes.products.fuse_matmul_weight_bias:matmul_plus",
        "-array",
        "array",
        "g (float[N,2] x) => (float[N,3] y) <float[2,3] w = {1,2,3,4,5,6}, "
        "float[3] k = {1,-2,3}> { m = MatMul(x, w) y = Sub(m, k) }",
    ),
    Shown(
        "fuse-linear-bias",
        "passes.products.fuse_linear_bias:_bias",
        "sign == 1",
        "True",
        "g (float[N,2] x) => (float[N,3] y) <float[2,3] w = {1,2,3,4,5,6}, "
        "float[3] k = {1,-2,3}, float[3] c = {4,5,6}, float[3,2] v = "
        "{1,2,3,4,5,6}> { m = Gemm(x, w) y = Sub(m, k) }",
    ),
    Shown(
        "fuse-gelu-exact",
        "passes.activation.fuse_gelu_exact:gelu",
        'b.op("Gelu", m["x"])',
        'b.op("Gelu", m["x"], approximate="tanh")',
        "g (float[N,4] x) => (float[N,4] y) <float half = {0.5}, float one = {1}, "
        "float root = {0.70710678}> { a = Mul(x, root) e = Erf(a) p = Add(e, one) "
        "q = Mul(x, p) y = Mul(q, half) }",
    ),
    Shown(
        "fuse-gelu-tanh-approximation",
        "passes.activation.fuse_gelu_tanh_approximation:gelu_tanh",
        'approximate="tanh"',
        'approximate="none"',
        "g (float[N,4] x) => (float[N,4] y) <float half = {0.5}, float one = {1}, "
        "float c = {0.044715}, float k = {0.7978845608}> { s = Mul(x, x) t = Mul(s, x) "
        "u = Mul(t, c) a = Add(x, u) z = Mul(a, k) w = Tanh(z) p = Add(w, one) q = Mul(x, p) "
        "y = Mul(q, half) }",
    ),
    Shown(
        "unmerge-transpose",
        "passes.layout.unmerge_transpose:transpose_of_merged",
        "for index in perm",
        "for index in sorted(perm)",
        "g (float[2,4,5,5] x) => (float[2,4,5,5] y) <int64[3] a = {8,5,5}, "
        "int64[4] b = {2,4,5,5}> { m = Reshape(x, a) t = Transpose<perm=[0,2,1]>(m) "
        "y = Reshape(t, b) }",
    ),
    Shown(
        "sink-expand",
        "passes.simplify.sink_expand:expand_afterwards",
        "m.root.op_type, small_inputs,",
        "m.root.op_type, [small_inputs[0], *small_inputs[:0:-1]],",
        "g (bool[1,3,1] c) => (float[2,3,4] y) <int64[3] s = {2,3,4}, float a = {1}, "
        "float b = {2}> { e = Expand(c, s) y = Where(e, a, b) }",
    ),
    Shown(
        "drop-softmax-guard",
        "passes.attention.drop_softmax_guard:guard_without_mask",
        "not _has_finite_rows(softmax.inputs[0], m)",
        "False",
        "g (float[3,4] q, float[4,5] k) => (float[3,5] y) <float zero = {0}, "
        "float[3,1] row = {1,0,1}> { t = MatMul(q, k) h = Log(row) s = Add(t, h) "
        "p = Softmax(s) n = IsNaN(p) y = Where(n, zero, p) }",
    ),
    Shown(
        "fuse-leaky-relu",
        "passes.activation.fuse_leaky_relu:larger",
        "alpha > 1",
        "False",
        "g (float[N,4] x) => (float[N,4] y) { a = Constant<value = float "
        "{1.5}>() zero = Constant<value = float {0.0}>() m = Mul(x, a) y = "
        "Max(x, m) }",
    ),
    Shown(
        "fuse-prelu",
        "passes.activation.fuse_prelu:_prelu",
        "b.constant(-array) if negated else a",
        "a",
        "g (float[N,3,2,2] x) => (float[N,3,2,2] y) <float[3,1,1] a = "
        "{0.5,-1.0,2.0}, float minus = {-1}> { p = Relu(x) n = Neg(x) q = "
        "Relu(n) m = Mul(a, q) y = Add(p, m) }",
    ),
    Shown(
        "fuse-reduce-mean",
        "passes.norms.fuse_reduce_mean:sum_over_count",
        'not _divides(m.array("constant"), count, m.root.op_type)',
        "False",
        "g (float[N,5] x) => (float[N,1] y) <int64[1] a = {1}, float c = {4.0}> "
        "{ s = ReduceSum(x, a) y = Div(s, c) }",
    ),
    Shown(
        "dot-merger",
        "passes.products.dot_merger:_layer",
        "row is None or reader.graph is not node.graph",
        "False",
        "g (float[N,6,4] x, bool flag) => (float[N,6,3] y) <float[4,3] u = "
        "{-0.032,-0.469,-0.457,0.516,-0.961,-0.626,-0.512,-0.576,0.131,0.553,0.834,-0.284}, "
        "float[4,5] v = "
        "{0.531,1.039,0.073,-0.459,-0.684,0.439,-0.107,1.038,0.83,1.249,-0.465,-0.032,-0.967,0.462,0.284,0.395,0.863,-0.613,0.614,0.775}, "
        "float[4,2] w = {0.278,0.914,-0.075,0.468,0.633,0.33,1.187,-0.779}, "
        "float[3] a = {0.81,0.812,1.384}, float[5] b = "
        "{-0.842,0.165,-0.979,-0.893,-0.376}, float[2] c = {1.2,0.095}, "
        "float[4,3] s = "
        "{-0.161,0.032,1.029,-0.695,0.651,0.98,0.378,0.191,0.511,1.019,-0.384,1.382}, "
        "float[4,3] z = "
        "{0.691,-0.861,1.472,0.866,1.443,1.056,0.706,0.876,-0.431,1.467,-0.821,1.132}> "
        "{ y = If(flag) <then_branch = t () => (float[N,6,3] o) { i = MatMul(x, "
        "u) k = MatMul(x, s) e = Neg(i) f = Neg(k) o = Add(e, f) }, else_branch "
        "= f () => (float[N,6,3] o2) { o2 = MatMul(x, z) }> }",
    ),
    Shown(
        "fuse-attention",
        "passes.attention.fuse_attention:attention",
        "not _fit(q, keys, v)",
        "False",
        "g (float[N,3,5,8] q, float[N,1,7,8] k, float[N,3,7,6] v) => "
        "(float[N,3,5,6] y) <float c = {0.35}, float low = {-1e31}> { t = "
        "Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) p = Softmax<axis=-1>(s) y "
        "= MatMul(p, v) }",
    ),
    Shown(
        "fuse-rotary-embedding",
        "passes.attention.rotary_pairs:once",
        "return b.constant(pair[0]) if (pair[0] == pair[1]).all() else None",
        "return b.constant(pair[0])",
        "g (float[2,5,3,4] x) => (float[2,5,3,4] y) <int64[1] o = {0}, int64[1] h = {2}, "
        "int64[1] e = {4}, int64[1] a = {3}, float[3,4] w = {0,1,2,3,1,0,2,4,5,1,0,2}> "
        "{ p = Slice(x, o, h, a) q = Slice(x, h, e, a) n = Neg(q) r = Concat<axis=-1>(n, p) "
        "c = Mul(x, w) s = Mul(w, r) y = Add(c, s) }",
    ),
    Shown(
        "fuse-attention-cache",
        "passes.attention.fuse_attention_cache:_joined",
        "past, new = node.inputs",
        "new, past = node.inputs",
        "g (float[2,3,4,8] q, float[2,3,4,8] k, float[2,3,4,6] v, float[2,3,4,8] pk, "
        "float[2,3,4,6] pv) => (float[2,3,4,6] y, float[2,3,8,8] nk, float[2,3,8,6] nv) { "
        "nk = Concat<axis=2>(pk, k) nv = Concat<axis=2>(pv, v) y = Attention(q, nk, nv) }",
    ),
]
