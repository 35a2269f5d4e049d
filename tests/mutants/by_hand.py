"""Mistakes written by hand, one of each kind: a wrong order, sign, axis, operand, a lost question."""

from __future__ import annotations

from mutants.shown import Shown

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
        "hoist-transposes",
        "passes.layout.hoist_transposes:_hoist",
        "zip(node.outputs, commuted.build(b, operands), strict=True)",
        "zip(node.outputs, reversed(commuted.build(b, operands)), strict=True)",
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
        "uplift-while-to-for",
        "passes.control_flow.uplift_while_to_for:_Counter.compared",
        "return 1 - (start - limit) // slope",
        "return 2 - (start - limit) // slope",
        "g (float[2] x) => (float[2] y) <int64 zero = {0}, int64 one = {1}, int64 four = {4}, "
        "bool go = {1}> { last, y = Loop(, go, zero, x) <body = body (int64 k, bool c, int64 i, "
        "float[2] p) => (bool co, int64 j, float[2] q) { j = Add(i, one) q = Add(p, p) "
        "co = Less(j, four) }> }",
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
        "prelu-to-lrelu",
        "passes.activation.float32_attribute:as_float32",
        "not bool(np.all(array == first))",
        "False",
        "g (float[N,2] x) => (float[N,2] y) <float[2] a = {0.1, 0.9}> { y = PRelu(x, a) }",
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
        "merge-constant-terms",
        "passes.simplify.merge_constant_terms:_total",
        "signs[1] * d.astype(np.float64)",
        "d.astype(np.float64)",
        "g (float[N,2] x) => (float[N,2] y) <float[2] c = {1,2}, float[2] d = {4,8}> "
        "{ a = Add(x, c) y = Sub(a, d) }",
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
]
