"""Mistakes written by hand: a wrong order, a wrong end, a forgotten question."""

from __future__ import annotations

from mutants.shown import Shown

STACKS = "k = Constant<value_ints=[0]>() p = Unsqueeze(a, k) q = Unsqueeze(b, k)"

SHOWN = [
    Shown(
        "const-elimination",
        "passes.simplify.const_elimination:_Folder.arrays",
        "limit=None) for value in node.inputs]",
        "limit=None) for value in reversed(node.inputs)]",
        "g (float[2] x) => (float[2] y) { a = Constant<value_floats=[1.0,2.0]>() "
        "b = Constant<value_floats=[3.0,5.0]>() c = Sub(a, b) y = Add(x, c) }",
    ),
    Shown(
        "const-deduplication",
        "passes.cleanup.const_deduplication:_Search.equal",
        "tensor.nbytes < LONG or self.digest(value) == self.digest(other)",
        "True",
        "g (float[N,2048] x) => (float[N,2048] y) "
        f"<float[2048] a = {{{', '.join(['1'] * 2048)}}}, "
        f"float[2048] b = {{1, 2, {', '.join(['1'] * 2046)}}}> "
        "{ m = Mul(x, a) y = Mul(m, b) }",
    ),
    Shown(
        "fuse-stack-split",
        "passes.simplify.fuse_stack_split:one_of_a_stack",
        "stack.values[int(index)]",
        "stack.values[abs(int(index))]",
        "g (float[4] a, float[4] b, float[4] c) => (float[4] y) { "
        f"{STACKS} r = Unsqueeze(c, k) i = Constant<value_int=-1>() "
        "s = Concat<axis=0>(p, q, r) z = Gather<axis=0>(s, i) y = Neg(z) }",
    ),
    Shown(
        "gather-to-split-fusion",
        "passes.tensors.gather_to_split_fusion:_stack",
        "reader: index % count",
        "reader: abs(index)",
        "g (float[2,12] x) => (float[2,4] p, float[2,4] q) "
        "<int64[3] s = {2,3,4}, int64 i = {0}, int64 j = {-1}> "
        "{ k = Reshape(x, s) p = Gather<axis=1>(k, i) q = Gather<axis=1>(k, j) }",
    ),
    Shown(
        "hoist-transposes",
        "passes.layout.hoist_transposes:_hoist",
        "zip(split.outputs, b.add(made), strict=True)",
        "zip(split.outputs, reversed(b.add(made)), strict=True)",
        "g (float[3,8] x) => (float[4,3] p, float[4,3] q) <int64[2] z = {4,4}> "
        "{ a, b = Split<axis=1>(x, z) p = Transpose(a) q = Transpose(b) }",
    ),
    Shown(
        "slices-to-split",
        "passes.simplify.slices_to_split:_split",
        "sorted(parts, key=lambda part: part.start)",
        "sorted(parts, key=lambda part: -part.start)",
        "g (float[6] x) => (float[2] u, float[2] v, float[2] w) <int64[1] o = {0}, "
        "int64[1] i = {2}, int64[1] j = {4}, int64[1] e = {6}> { p = Slice(x, o, i) "
        "q = Slice(x, i, j) r = Slice(x, j, e) u = Neg(p) v = Exp(q) w = Abs(r) }",
    ),
    Shown(
        "fuse-pixel-shuffle",
        "passes.tensors.fuse_pixel_shuffle:blocks_moved",
        ".reshape(size**2, channels).T",
        ".reshape(channels, size**2).T",
        "g (float[2,3,4,4] x) => (float[2,12,2,2] y) <int64[6] s = {2,3,2,2,2,2}, "
        "int64[4] o = {2,12,2,2}> { r = Reshape(x, s) t = Transpose<perm=[0,1,3,5,2,4]>(r) "
        "y = Reshape(t, o) }",
    ),
    Shown(
        "strided-slices-to-transpose",
        "passes.tensors.strided_slices_to_transpose:_order",
        "return order",
        "return order[::-1]",
        "g (float[2,4,4,8] x) => (float[2,2,2,32] y) <int64[2] a = {1,2}, int64[2] t = {2,2}, "
        "int64[2] e = {9,9}, int64[2] p = {0,0}, int64[2] q = {1,0}, int64[2] r = {0,1}, "
        "int64[2] s = {1,1}> { k = Slice(x, p, e, a, t) l = Slice(x, q, e, a, t) "
        "m = Slice(x, r, e, a, t) n = Slice(x, s, e, a, t) y = Concat<axis=-1>(k, l, m, n) }",
    ),
    Shown(
        "gather-moved-rows",
        "passes.tensors.row_moves:_rotation",
        "taken += rows",
        "taken = [*rows, *taken]",
        "g (float[2,4,32] x) => (float[2,4,32] y) <int64[1] o = {0}, int64[1] i = {1}, "
        "int64[1] e = {4}, int64[1] a = {1}> { p = Slice(x, o, i, a) q = Slice(x, i, e, a) "
        "y = Concat<axis=1>(q, p) }",
    ),
    Shown(
        "sum-residuals",
        "passes.norms.sum_residuals:sum_residuals",
        "*added.inputs",
        "*reversed(added.inputs), added.inputs[0]",
        "g (float[N,8] x, float[N,8] s, float[8] w) => (float[N,8] y) { k = Shape(x) "
        "h = Reshape(x, k) t = Mul(h, s) r = Add(t, s) y = LayerNormalization(r, w) }",
    ),
    Shown(
        "uplift-while-to-for",
        "passes.simplify.uplift_while_to_for:_Counter.compared",
        "return 1 - (start - limit) // slope",
        "return 2 - (start - limit) // slope",
        "g (float[2] x) => (float[2] y) <int64 zero = {0}, int64 one = {1}, int64 four = {4}, "
        "bool go = {1}> { last, y = Loop(, go, zero, x) <body = body (int64 k, bool c, int64 i, "
        "float[2] p) => (bool co, int64 j, float[2] q) { j = Add(i, one) q = Add(p, p) "
        "co = Less(j, four) }> }",
    ),
    Shown(
        "unroll-sequences",
        "passes.simplify.unroll_sequences:one_of_a_sequence",
        "items[int(position)](b)",
        "items[abs(int(position))](b)",
        "g (float[4] a, float[4] b, float[4] c) => (float[4] y) { s = SequenceConstruct(a, b, c) "
        "i = Constant<value_int=-1>() z = SequenceAt(s, i) y = Neg(z) }",
    ),
    Shown(
        "merge-consecutive-concats",
        "passes.simplify.merge_consecutive_concats:_pieces",
        "waiting.extend(reversed(inner.inputs))",
        "waiting.extend(inner.inputs)",
        "g (float[N,2] a, float[N,2] b, float[N,2] c) => (float[N,6] y) "
        "{ p = Concat<axis=1>(a, b) y = Concat<axis=1>(p, c) }",
    ),
    Shown(
        "fuse-onehot-matmul-to-gather",
        "passes.tensors.one_hot:one_hot",
        "values is None or values.tolist() != [0, 1]",
        "values is None",
        "g (int64[N,4] x) => (float[N,4,2] y) <float[3,2] t = {1,2,3,4,5,-6}, int64 three = {3}, "
        "float[2] v = {0,2}> { i = Mod(x, three) h = OneHot<axis=-1>(i, three, v) y = MatMul(h, t) }",
    ),
    Shown(
        "replace-stack-reshape",
        "passes.tensors.replace_stack_reshape:merged_to_the_right",
        '"Concat", *stack.values',
        '"Concat", *reversed(stack.values)',
        f"g (float[5,3] a, float[5,3] b) => (float[10,3] y) {{ {STACKS} "
        "s = Concat<axis=0>(p, q) d = Constant<value_ints=[10,3]>() y = Reshape(s, d) }",
    ),
    Shown(
        "detect-concat-interleave",
        "passes.tensors.detect_concat_interleave:values_take_turns",
        "*found.values",
        "*reversed(found.values)",
        "g (float[N,3,4,5] a, float[N,3,4,5] b) => (float[N,6,4,5] y) "
        "{ m = Constant<value_ints=[0,2,3,4,5]>() e = Constant<value_ints=[0,6,4,5]>() "
        "c = Concat<axis=1>(a, b) r = Reshape(c, m) "
        "t = Transpose<perm=[0,2,1,3,4]>(r) y = Reshape(t, e) }",
    ),
    Shown(
        "merge-consecutive-transposes",
        "passes.layout.merge_consecutive_transposes:transpose_of_transpose",
        "first[axis] for axis in second",
        "second[axis] for axis in first",
        "g (float[3,3,3] x) => (float[3,3,3] y) "
        "{ t = Transpose<perm=[1,2,0]>(x) y = Transpose<perm=[0,2,1]>(t) }",
    ),
    Shown(
        "fold-index-wrap",
        "passes.simplify.fold_index_wrap:_clipped",
        'b.const_like(-count, m["i"])',
        'b.const_like(0, m["i"])',
        "g (int64[64] i) => (bool[64] y) <int64 zero = {0}, int64 n = {5}, int64 low = {0}, "
        "int64 high = {4}> { negative = Less(i, zero) added = Add(i, n) "
        "w = Where(negative, added, i) c = Clip(w, low, high) y = Equal(w, c) }",
    ),
    Shown(
        "fold-affine-indices",
        "passes.tensors.fold_affine_indices:uniform_operand",
        "np.asarray(number, value.dtype.numpy())",
        "np.asarray(number + 1, value.dtype.numpy())",
        "g (float[S] x, int64[B,1] m) => (int64[B,S] y) <int64 zero = {0}, int64 one = {1}> "
        "{ n = Shape(x) s = Squeeze(n) r = Range(zero, s, one) d = Sub(r, r) y = Add(m, d) }",
    ),
    Shown(
        "hoist-bias",
        "passes.simplify.hoist_bias:bias_of_split_rows",
        "(heads, size)).reshape(-1)",
        "(heads, size)).T.reshape(-1)",
        "g (float[N,4] x, float[4,6] w) => (float[N,2,3] y) <float[2,3] c = {1,2,3,4,5,6}, "
        "int64[3] s = {0,2,3}> { p = MatMul(x, w) r = Reshape(p, s) y = Add(r, c) }",
    ),
    Shown(
        "dedup-op-and-var-names",
        "passes.cleanup.dedup_op_and_var_names:dedup_op_and_var_names",
        '("value named", names.name_values(cx.model)),',
        '("value named", sum(not setattr(v, "name", f"{v.name}_0") for v in cx.model.graph.outputs)),',
        "g (float[4] x) => (float[4] y) { y = Neg(x) }",
    ),
    Shown(
        "legalize-dot-general",
        "passes.canonicalize.legalize_dot_general:Plan.build",
        "self.lhs.build(b, lhs), self.rhs.build(b, rhs)",
        "self.rhs.build(b, rhs), self.lhs.build(b, lhs)",
        '<ir_version: 10, opset_import: ["" : 23, "smelt" : 1]>\n'
        "g (float[B,4,4] a, float[B,4,4] b) => (float[B,4,4] y) { y = smelt.DotGeneral"
        "<lhs_contracting=[2], rhs_contracting=[1], lhs_batch=[0], rhs_batch=[0]>(a, b) }",
    ),
    Shown(
        "remove-redundant-ops",
        "passes.simplify.remove_redundant_ops:_Search.key",
        "tuple(attributes),",
        "(),",
        "g (float[4,4] x) => (float[4,4] y) "
        "{ a = Softmax<axis=0>(x) b = Softmax<axis=1>(x) y = Sub(a, b) }",
    ),
    Shown(
        "merge-affine-dequantize-with-consecutive-ops",
        "passes.quantize.merge_affine_dequantize_with_consecutive_ops:_moved",
        "np.ascontiguousarray(array.transpose(permutation(node))).reshape(shape)",
        "array.reshape(shape)",
        "g (float[3,2] x) => (float[3,2] y) <int8[2,3] q = {1,2,3,4,5,6}, float s = {0.5}> "
        "{ d = DequantizeLinear(q, s) t = Transpose<perm=[1,0]>(d) y = Add(x, t) }",
    ),
    Shown(
        "fuse-gelu-sigmoid-approximation",
        "passes.activation.fuse_gelu_sigmoid_approximation:scaled_swish",
        "alpha=alpha",
        "alpha=1.0",
        "g (float[N,4] x) => (float[N,4] y) <float k = {1.702}> "
        "{ z = Mul(x, k) s = Sigmoid(z) y = Mul(x, s) }",
        opset=24,
    ),
    Shown(
        "prelu-to-lrelu",
        "passes.activation.float32_attribute:as_float32",
        "not bool(np.all(array == first))",
        "False",
        "g (float[N,2] x) => (float[N,2] y) <float[2] a = {0.1, 0.9}> { y = PRelu(x, a) }",
    ),
    Shown(
        "fuse-linear-scale",
        "passes.products.fuse_linear_scale:linear_times",
        '1 / columns if m.root.op_type == "Div" else columns',
        "columns",
        "g (float[N,3] x) => (float[N,2] y) <float[3,2] w = {1,2,3,4,5,6}, float[2] s = {2,4}> "
        "{ p = MatMul(x, w) y = Div(p, s) }",
    ),
    Shown(
        "reduce-transposes",
        "passes.layout.untransposed_operand:untransposed",
        "full.transpose(inverse(perm))",
        "full.transpose(perm)",
        "g (float[N,3,3] x) => (float[N,3,3] y) "
        "<float[3,3,1] c = {1,2,3,4,5,6,7,8,9}> "
        "{ t = Transpose<perm=[1,2,0]>(x) a = Add(t, c) y = Transpose<perm=[2,0,1]>(a) }",
    ),
    Shown(
        "fuse-softmax",
        "passes.attention.fuse_softmax:_fused",
        "axis=axis",
        "axis=-1",
        "g (float[N,3,3] x) => (float[N,3,3] y) <int64[1] a = {1}> "
        "{ m = ReduceMax<keepdims=1>(x, a) d = Sub(x, m) e = Exp(d) "
        "s = ReduceSum<keepdims=1>(e, a) y = Div(e, s) }",
    ),
    Shown(
        "fuse-swish",
        "passes.activation.fuse_swish:swish",
        "alpha=1.0",
        "alpha=1.702",
        "g (float[N,4] x) => (float[N,4] y) { s = Sigmoid(x) y = Mul(x, s) }",
        opset=24,
    ),
    Shown(
        "transpose-to-reshape",
        "passes.layout.transpose_to_reshape:moves_ones",
        "moved != sorted(moved)",
        "False",
        "g (float[2,3,1] x) => (float[3,2,1] y) { y = Transpose<perm=[1,0,2]>(x) }",
    ),
    Shown(
        "merge-constant-terms",
        "passes.simplify.merge_constant_terms:_total",
        "signs[1] * d.astype(np.float64)",
        "d.astype(np.float64)",
        "g (float[N,2] x) => (float[N,2] y) <float[2] c = {1,2}, float[2] d = {4,8}> "
        "{ a = Add(x, c) y = Sub(a, d) }",
    ),
    Shown(
        "offset-to-bias",
        "passes.products.offset_to_bias:_total",
        "wide + steps",
        "wide - steps",
        "g (float[N,2] x) => (float[N,1] y, float[N,1] z) <float[2,2] w = {1,2,3,4}, "
        "float[2] b = {1,2}, float one = {1}, int64[2] s = {1,1}> "
        "{ a = Gemm(x, w, b) y, v = Split<axis=1>(a, s) z = Add(v, one) }",
    ),
    Shown(
        "fuse-layernorm-or-instancenorm",
        "passes.norms.moments:MomentReader._root_of",
        "axes, epsilon, is_centred",
        "axes, 1e-5, is_centred",
        "g (float[N,4] x) => (float[N,4] y) <int64[1] a = {1}, float e = {0.1}, "
        "float[4] w = {1,2,3,4}> { m = ReduceMean(x, a) d = Sub(x, m) q = Mul(d, d) "
        "v = ReduceMean(q, a) o = Add(v, e) s = Sqrt(o) z = Div(d, s) y = Mul(z, w) }",
    ),
    Shown(
        "compose-conv1d",
        "passes.convolution.compose_conv1d:_row_that_meets",
        "return living.start",
        "return 0",
        "g (float[2,1,9] x) => (float[2,1,7] y) <float[1,1,3,3] k = {1,2,4,-1,3,5,-2,6,7}, "
        "int64[1] a = {2}> { q = Unsqueeze(x, a) z = Conv<pads=[1,0,1,0]>(q, k) "
        "y = Squeeze(z, a) }",
    ),
    Shown(
        "fuse-sigmoid",
        "passes.activation.fuse_sigmoid:sigmoid",
        'b.op("Sigmoid", m["x"])',
        'b.op("Sigmoid", b.op("Neg", m["x"]))',
        "g (float[N,4] x) => (float[N,4] y) <float one = {1}> "
        "{ n = Neg(x) e = Exp(n) d = Add(e, one) y = Div(one, d) }",
    ),
    Shown(
        "fuse-hard-swish",
        "passes.activation.fuse_hard_swish:gated",
        "not is_close(ir.DataType.FLOAT.numpy().type(alpha), 1 / 6, 1)",
        "False",
        "g (float[N,4] x) => (float[N,4] y) "
        "{ h = HardSigmoid<alpha=0.2, beta=0.5>(x) y = Mul(x, h) }",
    ),
]
