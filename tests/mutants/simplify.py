"""Mistakes in passes that simplify: a condition that is missing, a sign, the wrong branch."""

from __future__ import annotations

from mutants.shown import Shown

SHOWN = [
    Shown(
        "dead-code-elimination",
        "passes.cleanup.dead_code_elimination:_with_cache",
        "3 if any(value is not None for value in node.inputs[4:6]) else 1",
        "1",
        "g (float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v, float[1,2,5,4] "
        "pk, float[1,2,5,4] pv) => (float[1,2,3,4] y) { y, keys, values = "
        "Attention(q, k, v, , pk, pv) }",
    ),
    Shown(
        "swap-dot-general",
        "passes.canonicalize.swap_dot_general:transposed_product",
        'result if moved == sorted(moved) else b.op("Transpose", result, perm=moved)',
        "result",
        '<ir_version: 10, opset_import: ["" : 23, "smelt" : 1]> g '
        "(float[B,K,H,D] a, float[B,H,Q,K] b) => (float[B,Q,H,D] y) { t = "
        "smelt.DotGeneral<lhs_contracting=[1], rhs_contracting=[3], "
        "lhs_batch=[0,2], rhs_batch=[0,1]>(a, b) y = "
        "Transpose<perm=[0,3,1,2]>(t) }",
    ),
    Shown(
        "max-to-relu",
        "passes.canonicalize.max_to_relu:max_with_zero",
        'not m.constants.is_filled(m["zero"], 0)',
        "False",
        "g (float[4] x) => (float[4] y) <float z = {1e-12}> { y = Max(x, z) }",
    ),
    Shown(
        "noop-elimination",
        "passes.simplify.noop_elimination:pad_nothing",
        "any(pads)",
        "False",
        "g (float[4] x) => (float[4] y) <int64[2] p = {1,-1}> { a = Pad(x, p) y = Exp(a) }",
    ),
    Shown(
        "split-before-reshape",
        "passes.simplify.split_before_reshape:cut_first",
        "zip(cut, targets, strict=True)",
        "zip(cut[::-1], targets, strict=True)",
        "g (float[2,12] x) => (float[2,6] p, float[2,6] q) <int64[4] s = {2,2,2,3}, "
        "int64[2] n = {1,1}, int64[2] r = {2,6}> { h = Reshape(x, s) a, b = Split<axis=1>(h, n) "
        "c = Reshape(a, r) d = Reshape(b, r) p = Exp(c) q = Neg(d) }",
    ),
    Shown(
        "fuse-shape-slice",
        "passes.simplify.fuse_shape_slice:_place",
        "all(map(same_dim, elements, dims[start:]))",
        "same_dim(elements[0], dims[start])",
        "g (float[B,S,T] x) => (int64[2] y) { b = Shape<end=1>(x) t = Shape<start=2>(x) "
        "y = Concat<axis=0>(b, t) }",
    ),
    Shown(
        "drop-zero-state",
        "passes.simplify.drop_zero_state:state_of_zeros",
        "_is_zero(value, m)",
        "value is not None",
        "g (float[2,1,1] x, float[1,1,1] h) => (float[2,1,1,1] y) <float[1,1,1] w = {1}, "
        "float[1,1,1] r = {2}> { y = RNN<hidden_size=1>(x, w, r, , , h) }",
    ),
    Shown(
        "select-optimization",
        "passes.simplify.select_optimization:known_choice",
        'm["b"] if not mask.any() else Miss("the condition is true at some places only")',
        'm["b"]',
        "g (float[N,2] a, float[N,2] b) => (float[N,2] y) <bool[2] c = {1,0}> { "
        "y = Where(c, a, b) }",
    ),
    Shown(
        "cast-optimization",
        "passes.simplify.cast_optimization:cast_of_cast",
        "not holds(middle, x.dtype)",
        "False",
        "g (float[4] x) => (float[4] y) { a = Cast<to=10>(x) y = Cast<to=1>(a) }",
    ),
    Shown(
        "fold-bool-compare",
        "passes.simplify.fold_bool_compare:compared_truth",
        "compare(number, t) if swapped else compare(t, number)",
        "compare(number, t)",
        "g (bool[N] p) => (bool[N] y) <int32 one = {1}, int32 i = {0}, float "
        "half = {0.5}, bool true = {1}, bool false = {0}> { c = Cast<to=1>(p) q "
        "= Greater(c, half) y = Not(q) }",
    ),
    Shown(
        "fold-control-flow",
        "passes.simplify.fold_control_flow:_Folder.branch",
        '"then_branch" if taken else "else_branch"',
        '"then_branch"',
        "g (float[N] x) => (float[N] y) <bool c = {0}> { n = Neg(x) y = If(c) "
        "<then_branch = g1 () => (float[N] p) { e = Exp(n) p = Add(e, x) }, "
        "else_branch = g2 () => (float[N] q) { e = Abs(n) q = Add(e, x) }> }",
        opset=13,
    ),
    Shown(
        "fuse-floor-mod",
        "passes.simplify.fuse_floor_mod:floor_mod",
        "added is None or not np.array_equal(n, added)",
        "False",
        "g (int32[N,2] x) => (int32[N,2] y) <int32 n = {4}, int32 m = {5}, int32 "
        "zero = {0}> { r = Mod<fmod=1>(x, n) l = Less(r, zero) a = Add(r, m) y = "
        "Where(l, a, r) }",
    ),
    Shown(
        "fuse-squeeze-expand-dims",
        "passes.simplify.fuse_squeeze_expand_dims:there_and_back",
        'x if first == second else Miss("the axes differ")',
        "x",
        "g (float[N,1,S,1] x) => (float[N,S,1,1] y) <int64[2] p = {1,3}, "
        "int64[2] q = {-1,1}, int64[1] one = {1}, int64[1] last = {-1}> { a = "
        "Squeeze(x, p) k = Constant<value_ints=[2,3]>() y = Unsqueeze(a, k) }",
    ),
    Shown(
        "fuse-reduce-keepdims",
        "passes.simplify.fuse_reduce_keepdims:reshape_of_reduction",
        "not same_dims(made, result)",
        "False",
        "g (float[N,3,4] x, bool c) => (float[A,B,C] y) { a = "
        "Constant<value_ints=[1]>() r = ReduceSum<keepdims=0>(x, a) u = "
        "Constant<value_ints=[0]>() y = Unsqueeze(r, u) }",
    ),
    Shown(
        "merge-consecutive-slices",
        "passes.simplify.merge_consecutive_slices:_merged",
        "(step, stride) != (1, 1)",
        "False",
        "g (float[N,5] x) => (float[M,K] y) { hs = Constant<value_ints=[0]>() he "
        "= Constant<value_ints=[9223372036854775807]>() ha = "
        "Constant<value_ints=[0]>() ht = Constant<value_ints=[2]>() h = Slice(x, "
        "hs, he, ha, ht) ys = Constant<value_ints=[1]>() ye = "
        "Constant<value_ints=[2]>() ya = Constant<value_ints=[0]>() y = Slice(h, "
        "ys, ye, ya) }",
    ),
    Shown(
        "concat-to-pixel-shuffle",
        "passes.tensors.concat_to_pixel_shuffle:turns_of_turns",
        "groups if outer.axis == 2 else zip(*groups, strict=True)",
        "groups",
        "g (float[N,C,3,2] a, float[N,C,3,2] b, float[N,C,3,2] c, float[N,C,3,2] "
        "d) => (float[N,C,6,4] y) { p_axis = Constant<value_ints=[3]>() p_a = "
        "Unsqueeze(a, p_axis) p_b = Unsqueeze(b, p_axis) p_stack = "
        "Concat<axis=3>(p_a, p_b) p_dims = Constant<value_ints=[0,0,6,2]>() p = "
        "Reshape(p_stack, p_dims)q_axis = Constant<value_ints=[3]>() q_c = "
        "Unsqueeze(c, q_axis) q_d = Unsqueeze(d, q_axis) q_stack = "
        "Concat<axis=3>(q_c, q_d) q_dims = Constant<value_ints=[0,0,6,2]>() q = "
        "Reshape(q_stack, q_dims)y_axis = Constant<value_ints=[4]>() y_p = "
        "Unsqueeze(p, y_axis) y_q = Unsqueeze(q, y_axis) y_stack = "
        "Concat<axis=4>(y_p, y_q) y_dims = Constant<value_ints=[0,0,6,4]>() y = "
        "Reshape(y_stack, y_dims) }",
    ),
    Shown(
        "use-reflection-padding",
        "passes.tensors.use_reflection_padding:_mode",
        "all(row == size - 1 for row in after)",
        "True",
        "g (float[N,5,3] x) => (float[N,10,3] y) { i = "
        "Constant<value_ints=[0,1,2,3,4]>() l = Gather<axis=1>(x, i) y = "
        "Concat<axis=1>(x, l) }",
    ),
    Shown(
        "fold-reshape-pairs",
        "passes.simplify.fold_reshape_pairs:_Graph.shape_before",
        "node.op_type not in _MIDDLE",
        "False",
        "g (float[B,2,3] x, float[B,2,3] z) => (float[B,2,3] y) <int64[2] flat = "
        "{-1,3}, int64[3] back = {-1,2,3}, int64[2] two = {0,6}, int64[1] last = "
        "{3}> { r = Reshape(x, two) a = Softmax(r) y = Reshape(a, back) }",
    ),
    Shown(
        "loop-invariant-elimination",
        "passes.cleanup.loop_invariant_elimination:_Carrier.shrink",
        "form.body_input + i",
        "form.body_input - i",
        "g (float[2] a, float[2] b, float[m,2] xs) => (float[2] r, float[2] s, "
        "float[m,2] each) { r, s, each = Scan<num_scan_inputs = 1, body = body "
        "(float[2] p, float[2] q, float[2] x) => (float[2] t, float[2] u, "
        "float[2] e) { t = Add(p, x) u = Identity(q) e = Mul(t, q) }>(a, b, xs) }",
    ),
    Shown(
        "merge-consecutive-relus",
        "passes.simplify.merge_consecutive_relus:clip_to_both",
        "not (first[0] <= first[1] and second[0] <= second[1] and low <= high)",
        "False",
        "g (float[N,4] x) => (float[N,4] y) <float a = {-1}, float b = {1}, "
        "float c = {0.5}, float d = {2}, float z = {0}, float six = {6}, float "
        "inf = {inf}> { r = Clip(x, a, c) y = Clip(r, b, d) }",
    ),
    Shown(
        "clip-of-min-max",
        "passes.simplify.clip_of_min_max:_number",
        "not bool(np.all(array == first))",
        "False",
        "g (float[4] x) => (float[4] y) <float lo = {-1.0}, float hi = {1.0}, "
        "float nan = {nan}, float[4] many = {-1,0,0,0}> { t = Max(x, many) y = "
        "Min(t, hi) }",
    ),
    Shown(
        "merge-consecutive-paddings",
        "passes.simplify.merge_consecutive_paddings:pad_of_pad",
        "min((*inner, *outer), default=0) < 0",
        "False",
        "g (float[N,4] x) => (float[a,b] y) <int64[4] p = {1,0,2,0}, int64[4] q "
        "= {0,1,0,1}, int64[4] r = {1,2,0,1}, float c = {3}, float z = {0}, "
        "float[1] c1 = {3}, int64[4] n = {-1,0,0,0}> { p1 = Pad(x, n) y = "
        "Pad(p1, p) }",
    ),
    Shown(
        "remove-symbolic-reshape",
        "passes.simplify.remove_symbolic_reshape:reshape_operand",
        "target if inferred == 1 and all(n > 0 for n in beside) else None",
        "target",
        "g (float[B,S,4] x) => (float[S,B,4] y) <int64[1] c = {4}> { d = "
        "Shape<start=0,end=1>(x) e = Shape<start=1,end=2>(x) s = "
        "Concat<axis=0>(e, d, c) y = Reshape(x, s) }",
    ),
    Shown(
        "sink-unit-dims",
        "passes.simplify.sink_unit_dims:_elementwise",
        "any(other.shape[axis] != 1 for axis in _axes_of_operand(other.shape, axes, len(result)))",
        "False",
        "g (float[B,3,4] x, float[3,1,4] z, bool[1,4] c, float[3,5,4] w) => "
        "(float y) { i = Constant<value_ints=[2]>() u = Unsqueeze(x, i) t = "
        "Add(u, w) s = Constant<value_ints=[-1,4]>() y = Reshape(t, s) }",
    ),
    Shown(
        "merge-consecutive-reshapes",
        "passes.simplify.merge_consecutive_reshapes:constant_shape",
        "target if unknown <= 1 else None",
        "target",
        "g (float[S,T] x) => (float[1,S,T] y) <int64[2] a = {0,1}, int64[1] one "
        "= {1}> { u = Unsqueeze(x, a) y = Squeeze(u, one) }",
    ),
    Shown(
        "divide-to-multiply",
        "passes.simplify.divide_to_multiply:over_constant",
        "not m.options.fast and not _are_powers_of_two(divisor)",
        "False",
        "g (float[N,2] x) => (float[N,2] y) <float[2] c = {1.0,3.0}> { y = Div(x, c) }",
    ),
]
