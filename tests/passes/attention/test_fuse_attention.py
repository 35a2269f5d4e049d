"""Scaled dot-product attention in every form becomes one operator."""

import onnx_ir as ir
import pytest
from convolutions import tensor
from rewrites import check_operators, check_refused, check_same_numbers, check_unchanged

from smelt import optimize
from smelt.ir import text
from smelt.passes.attention.fuse_attention import fuse_attention

SCORES = "t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) "
CAPPED = "f = Div(s, forty) h = Tanh(f) a = Mul(h, thirty) "
END = "p = Softmax<axis=-1>({}) y = MatMul(p, v)"


def graph(body: str, *, inputs: str = "", constants: str = "", heads: str = "3") -> str:
    operands = f"float[N,{heads},5,8] q, float[N,{heads},7,8] k, float[N,{heads},7,6] v"
    numbers = {"c": "0.35", "low": "-1e31", "thirty": "30", "forty": "40"}
    named = [f"float {name} = {{{number}}}" for name, number in numbers.items()]
    listed = ", ".join(filter(None, [*named, constants]))
    return f"g ({operands}{inputs}) => (float[N,{heads},5,6] y) <{listed}> {{ {body} }}"


FUSED = {
    "a factor": (graph(SCORES + "a = Mul(s, c) " + END.format("a")), "Transpose Attention"),
    "a divisor": (graph(SCORES + "a = Div(s, c) " + END.format("a")), "Transpose Attention"),
    "a factor of each head": (graph(
        SCORES + "a = Mul(s, e) w = Add(a, m) " + END.format("w"),
        constants="float[3,1,1] e = {2,0.5,-1}, " + tensor("m", (5, 7))), "Transpose Mul Attention"),
    "no scale": (graph(SCORES + END.format("s")), "Transpose Attention"),
    "a mask": (graph(
        SCORES + "a = Mul(s, c) w = Where(m, a, low) " + END.format("w"),
        inputs=", bool[5,7] m"), "Transpose Where Attention"),
    "a mask for each row of a batch": (graph(
        SCORES + "w = Where(m, s, low) " + END.format("w"),
        inputs=", bool[N,1,5,7] m"), "Transpose Where Attention"),
    "a mask for all queries": (graph(
        SCORES + "w = Where(m, s, low) " + END.format("w"),
        inputs=", bool[N,1,1,7] m"), "Transpose Where Expand Attention"),
    "a mask for all keys": (graph(
        SCORES + "w = Where(m, s, low) " + END.format("w"),
        inputs=", bool[5,1] m"), "Transpose Where Expand Attention"),
    "a mask for each head of all batches": (graph(
        SCORES + "w = Where(m, s, low) " + END.format("w"),
        inputs=", bool[3,1,7] m"), "Transpose Where Expand Attention"),
    "a bias for each head of all batches": (graph(
        SCORES + "w = Add(s, m) " + END.format("w"),
        constants=tensor("m", (3, 5, 7))), "Transpose Unsqueeze Attention"),
    "zeros": (graph(
        SCORES + "w = Add(s, m) " + END.format("w"),
        constants="float[3,1,7] m = {" + ",".join(["0"] * 21) + "}"), "Transpose Attention"),
    "a constant bias for all queries": (graph(
        SCORES + "w = Add(m, s) " + END.format("w"),
        constants=tensor("m", (1, 7))), "Transpose Expand Attention"),
    "a mask of what is hidden": (graph(
        SCORES + "a = Mul(s, c) w = Where(m, low, a) " + END.format("w"),
        inputs=", bool[5,7] m"), "Transpose Where Attention"),
    "a constant mask of -inf": (graph(
        SCORES + "w = Where(m, inf, s) " + END.format("w"),
        constants="float inf = {-inf}, bool[5,7] m = {"
        + ",".join("11101110111001111011101110010111001") + "}"
        ), "Transpose Where Attention"),
    "a constant bias": (graph(
        SCORES + "w = Add(m, s) " + END.format("w"),
        constants=tensor("m", (5, 7))), "Transpose Attention"),
    "a sum of constants, repeated": (graph(
        "e = Expand(m, s) u = Add(e, o) " + SCORES.replace("s =", "sc =") + "w = Add(sc, u) "
        + END.format("w"), constants=tensor("m", (5, 7))
        + ", int64[4] s = {1,1,5,7}, float o = {-100}"), "Expand Add Transpose Attention"),
    "a choice between constants": (graph(
        SCORES + "b = Where(m, c, low) w = Add(s, b) " + END.format("w"),
        inputs=", bool[1,1,5,7] m"), "Where Transpose Attention"),
    "a table by distance, under a mask": (graph(
        "r = Gather<axis=0>(d, i) e = Unsqueeze(r, o) b = Where(m, e, low) " + SCORES + "w = Add(s, b) " + END.format("w"),
        inputs=", bool[N,1,5,7] m, int64[5,7] i",
        constants="float[3] d = {1,-4,-3.402823e38}, int64[2] o = {0,1}"),
        "Gather Unsqueeze Where Attention"),
    "scaled queries": (graph(
        "h = Mul(q, c) t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(h, t) a = Div(s, c) "
        + END.format("a")), "Transpose Attention"),
    "capped scores": (graph(
        SCORES + CAPPED + END.format("a")), "Transpose Attention"),
}  # fmt: skip


def test_a_cap_goes_into_the_scale() -> None:
    source = graph(SCORES + CAPPED + END.format("a"))
    model = optimize(text.parse(source, 23), pipeline="fuse-attention")
    (node,) = [node for node in model.graph if node.op_type == "Attention"]
    assert node.attributes["softcap"].as_float() == 30
    assert node.attributes["scale"].as_float() == pytest.approx(30 / 40)


MASKED_BEHIND_A_CAP = {
    "a mask": ("w = Where(m, a, low) ", ", bool[5,7] m", ""),
    "a mask of what is hidden": ("w = Where(m, low, a) ", ", bool[5,7] m", ""),
    "a bias": ("w = Add(a, m) ", "", tensor("m", (5, 7))),
    "a mask that is subtracted": ("w = Sub(a, m) ", "", tensor("m", (5, 7))),
}


@pytest.mark.parametrize("name", MASKED_BEHIND_A_CAP)
def test_a_cap_before_a_mask_stays(name: str) -> None:
    """ONNX Runtime up to 1.26 caps masked scores, so low scores would show hidden keys."""
    masked, inputs, constants = MASKED_BEHIND_A_CAP[name]
    body = SCORES + CAPPED + masked + END.format("w")
    check_unchanged(fuse_attention, graph(body, inputs=inputs, constants=constants))


def test_a_mask_of_one_key_or_all() -> None:
    source = text.parse(
        graph(SCORES + "w = Where(m, s, low) " + END.format("w"), inputs=", bool[5,M] m").replace(
            "N,3,7", "N,3,3"
        ),
        23,
    )
    model = optimize(source, pipeline="fuse-attention")
    assert {"Expand", "Attention"} <= {node.op_type for node in model.graph}
    check_same_numbers(source, model, fuse_attention.exactness, modes=("normal",))


@pytest.mark.parametrize(("before", "after"), FUSED.values(), ids=FUSED.keys())
def test_fuses(before: str, after: str) -> None:
    # The Transpose of the keys is undone by another, which merges with it later.
    source = text.parse(before, 23)
    model = optimize(source, pipeline="fuse-attention,merge-consecutive-transposes")
    kinds = [node.op_type for node in model.graph if node.op_type != "Constant"]
    assert kinds == [kind for kind in after.split() if kind != "Transpose"]
    check_same_numbers(source, model, fuse_attention.exactness, modes=("normal",))


ROWS = (
    "g (float[N,5,24] q0, float[N,7,24] k0, float[N,7,12] v0) => (float[N,5,12] y) "
    "<int64[4] d = {0,0,3,8}, int64[4] e = {0,0,3,4}, int64[3] r = {0,0,12}, float c = {0.35}> "
    "{ q1 = Reshape(q0, d) k1 = Reshape(k0, d) v1 = Reshape(v0, e) "
    "q = Transpose<perm=[0,2,1,3]>(q1) t = Transpose<perm=[0,2,3,1]>(k1) "
    "v = Transpose<perm=[0,2,1,3]>(v1) s = MatMul(q, t) a = Mul(s, c) p = Softmax(a) "
    "o = MatMul(p, v) b = Transpose<perm=[0,2,1,3]>(o) y = Reshape(b, r) }"
)


def test_heads_are_split_inside() -> None:
    source = text.parse(ROWS, 23)
    model = optimize(source)
    (node,) = model.graph
    assert node.op_type == "Attention"
    assert node.attributes["q_num_heads"].as_int() == node.attributes["kv_num_heads"].as_int() == 3
    check_same_numbers(source, model, fuse_attention.exactness, modes=("normal",))


SEQUENCE_FIRST = (
    "g (float[5,N,12] x) => (float[5,N,12] y) <int64[3] d = {5,-1,4}, int64[4] h = {-1,3,5,4}, "
    "int64[3] r = {5,-1,12}, float c = {0.35}> { k = Neg(x) v = Abs(x) "
    "q1 = Reshape(x, d) q2 = Transpose<perm=[1,0,2]>(q1) q3 = Reshape(q2, h) "
    "k1 = Reshape(k, d) k2 = Transpose<perm=[1,0,2]>(k1) k3 = Reshape(k2, h) "
    "v1 = Reshape(v, d) v2 = Transpose<perm=[1,0,2]>(v1) v3 = Reshape(v2, h) "
    "t = Transpose<perm=[0,1,3,2]>(k3) s = MatMul(q3, t) a = Mul(s, c) p = Softmax(a) "
    "o = MatMul(p, v3) b = Transpose<perm=[2,0,1,3]>(o) y = Reshape(b, r) }"
)


def test_a_sequence_that_comes_first_changes_places_with_the_batch_once() -> None:
    """PyTorch's nn.MultiheadAttention has the sequence first."""
    source = text.parse(SEQUENCE_FIRST, 23)
    model = optimize(source)
    kinds = [node.op_type for node in model.graph]
    moved = [kind for kind in kinds if kind not in ("Neg", "Abs")]
    assert moved == ["Transpose", "Transpose", "Transpose", "Attention", "Transpose"]
    (node,) = [node for node in model.graph if node.op_type == "Attention"]
    assert node.attributes["q_num_heads"].as_int() == 3
    check_same_numbers(source, model, fuse_attention.exactness, modes=("normal",))


NORMED = (
    "g (float[N,5,3,8] x, float[8] w, float[N,3,5,8] k) => (float[N,3,5,8] y) {{ h = Transpose<perm=[0,2,1,3]>(x) "
    "q = RMSNormalization<axis={axis}>(h, w) y = Attention<scale=1.0>(q, k, k) }}"
)


@pytest.mark.parametrize("axis", [-1, 3])
def test_heads_are_normalized_before_they_go_first(axis: int) -> None:
    """Gemma 3 normalizes queries and keys after the Transpose; moved before it, Attention can split
    the heads."""
    model = check_operators(
        fuse_attention,
        NORMED.format(axis=axis),
        ["RMSNormalization", "Transpose", "Attention"],
        modes=("normal",),
    )
    (norm,) = [node for node in model.graph if node.op_type == "RMSNormalization"]
    assert norm.inputs[0] is model.graph.inputs[0]


def test_heads_are_scaled_before_they_go_first() -> None:
    """Swin V2 has one factor for each head; moved before the Transpose, Attention can split the
    heads."""
    source = (
        "g (float[N,5,3,8] q0, float[N,3,7,8] k, float[N,3,7,6] v) => (float[N,3,5,6] y) "
        "<float[3,1,1] c = {1, 2, 3}> { q = Transpose<perm=[0,2,1,3]>(q0) "
        "t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) a = Mul(s, c) p = Softmax(a) "
        "y = MatMul(p, v) }"
    )
    kinds = ["Transpose", "Transpose", "Mul", "Transpose", "Attention"]
    model = check_operators(fuse_attention, source, kinds, modes=("normal",))
    (factor,) = [node for node in model.graph if node.op_type == "Mul"]
    assert factor.inputs[0] is model.graph.inputs[0]


def test_a_norm_of_more_than_a_head_stays() -> None:
    source = NORMED.format(axis=2).replace("float[8] w", "float[5,8] w")
    check_unchanged(fuse_attention, source)


ONE_HEAD = (
    "g (float[N,5,8] q0, float[N,7,8] k0, float[N,7,4] v0) => (float[N,5,4] y) "
    "<int64[4] d = {{0,1,5,8}}, int64[4] e = {{0,1,8,7}}, int64[4] f = {{0,1,7,4}}, "
    "int64[3] r = {{0,5,4}}, float c = {{0.35}}> {{ q = Reshape(q0, d) v = Reshape(v0, f) "
    "{keys} a = Mul(t, c) s = MatMul(q, a) p = Softmax(s) o = MatMul(p, v) y = Reshape(o, r) }}"
)


@pytest.mark.parametrize(
    "keys",
    [
        "k1 = Transpose<perm=[0,2,1]>(k0) t = Reshape(k1, e)",
        "k1 = Unsqueeze(k0, one) t = Transpose<perm=[0,1,3,2]>(k1)",
    ],
)
def test_one_head_is_split_by_a_reshape(keys: str) -> None:
    source = text.parse(
        ONE_HEAD.format(keys=keys).replace("<int64", "<int64[1] one = {1}, int64", 1), 23
    )
    model = optimize(source)
    (node,) = model.graph
    assert node.attributes["q_num_heads"].as_int() == node.attributes["kv_num_heads"].as_int() == 1
    check_same_numbers(source, model, fuse_attention.exactness, modes=("normal",))


def test_keys_of_one_head_that_are_not_turned_back() -> None:
    keys = "t = Reshape(k2, e)"
    source = ONE_HEAD.format(keys=keys).replace("float[N,7,8] k0", "float[N,7,8] k2")
    model = optimize(text.parse(source, 23))
    attention = next(node for node in model.graph if node.op_type == "Attention")
    assert "q_num_heads" not in attention.attributes
    check_same_numbers(text.parse(source, 23), model, fuse_attention.exactness, modes=("normal",))


def test_heads_that_are_not_merged_again_stay_outside() -> None:
    before = ROWS.replace("{0,0,12}", "{0,0,4,3}").replace("float[N,5,12] y", "float[N,5,4,3] y")
    before = before.replace("int64[3] r", "int64[4] r")
    source = text.parse(before, 23)
    model = optimize(source)
    attention = next(node for node in model.graph if node.op_type == "Attention")
    assert "q_num_heads" not in attention.attributes
    check_same_numbers(source, model, fuse_attention.exactness, modes=("normal",))


def test_one_bias_serves_every_layer() -> None:
    before = (
        "g (float[N,3,5,8] q, float[N,3,5,8] k, float[N,3,5,8] v, bool[5,5] m) "
        "=> (float[N,3,5,8] y) <float low = {-1e31}> { t = Transpose<perm=[0,1,3,2]>(k) "
        "s = MatMul(q, t) w = Where(m, s, low) p = Softmax(w) x = MatMul(p, v) "
        "s2 = MatMul(x, t) w2 = Where(m, s2, low) p2 = Softmax(w2) y = MatMul(p2, v) }"
    )
    source = text.parse(before, 23)
    model = optimize(source)
    kinds = [node.op_type for node in model.graph]
    assert (kinds.count("Where"), kinds.count("Attention")) == (1, 2)
    check_same_numbers(source, model, fuse_attention.exactness, modes=("normal",))


@pytest.mark.parametrize("size", ["7", "S"])
def test_a_triangle_of_infinities_is_the_causal_mask(size: str) -> None:
    """PyTorch's exporters write ``masked_fill(mask == 0, -inf)`` in this way."""
    source = text.parse(
        f"g (float[N,3,{size},8] q, float[N,3,{size},8] k, float[N,3,{size},6] v) => "
        f"(float[N,3,{size},6] y) <float inf = {{-inf}}, bool one = {{1}}, int64 up = {{1}}> "
        "{ n = Shape<start=2, end=3>(q) z = Concat<axis=0>(n, n) o = Expand(one, z) "
        "m = Trilu<upper=1>(o, up) t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) "
        "w = Where(m, inf, s) p = Softmax(w) y = MatMul(p, v) }",
        23,
    )
    model = optimize(source)
    (node,) = model.graph
    assert (node.op_type, node.attributes["is_causal"].as_int()) == ("Attention", 1)
    check_same_numbers(source, model, fuse_attention.exactness, modes=("normal",))


def _adds_infinities(size: str, side: int) -> ir.Model:
    """Return attention with an added triangle of -inf from diagonal ``side`` on."""
    return text.parse(
        f"g (float[N,3,{size},8] q, float[N,3,{size},8] k, float[N,3,{size},6] v) => "
        f"(float[N,3,{size},6] y) <float inf = {{-inf}}, float no = {{0}}, float[1] one = {{1}}, "
        f"int64 low = {{{side - 1}}}> "
        "{ n = Shape<start=2, end=3>(q) z = Concat<axis=0>(n, n) o = Expand(one, z) "
        "u = Trilu<upper=0>(o, low) h = Equal(u, no) m = Where(h, inf, no) "
        "t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) "
        "w = Add(s, m) p = Softmax(w) y = MatMul(p, v) }",
        23,
    )


@pytest.mark.parametrize("size", ["7", "S"])
def test_a_triangle_that_adds_infinities_is_the_causal_mask(size: str) -> None:
    """PyTorch's TorchScript exporter writes a causal attention in this way."""
    source = _adds_infinities(size, 1)
    model = optimize(source)
    (node,) = model.graph
    assert (node.op_type, node.attributes["is_causal"].as_int()) == ("Attention", 1)
    check_same_numbers(source, model, fuse_attention.exactness, modes=("normal",))


def test_a_triangle_that_hides_a_row_by_infinities_keeps_its_nan() -> None:
    source = _adds_infinities("S", 0)
    model = optimize(source)
    assert "ReduceMax" in [node.op_type for node in model.graph]
    check_same_numbers(source, model, fuse_attention.exactness, modes=("normal",))


KEPT = {
    "a softmax over the queries": graph(
        SCORES + "p = Softmax<axis=2>(s) y = MatMul(p, v)"),
    "an infinite mask": graph(
        SCORES + "w = Where(m, s, inf) " + END.format("w"), inputs=", bool[5,7] m",
        constants="float inf = {-inf}"),
    "a constant that hides a row by -inf": graph(
        SCORES + "w = Where(m, inf, s) " + END.format("w"),
        constants="float inf = {-inf}, bool[5,1] r = {0,0,1,0,0}, int64[2] z = {5,7}").replace(
        "{ t", "{ m = Expand(r, z) t"),
    "a triangle without the own key, by -inf": graph(
        SCORES + "w = Where(m, inf, s) " + END.format("w"),
        constants="float inf = {-inf}, bool[7,7] o = {" + ",".join(["1"] * 49) + "}, int64 z = {0}"
        ).replace("{ t", "{ m = Trilu<upper=1>(o, z) t").replace("3,5,8] q", "3,7,8] q").replace(
        "3,5,6] y", "3,7,6] y"),
    "an infinity above": graph(
        SCORES + "w = Where(m, inf, s) " + END.format("w"), inputs=", bool[5,7] m",
        constants="float inf = {inf}"),
    "a mask that hides little": graph(
        SCORES + "w = Where(m, s, c) " + END.format("w"), inputs=", bool[5,7] m"),
    "a mask of another length": graph(
        SCORES + "w = Where(m, s, low) " + END.format("w"), inputs=", bool[N,1,L,7] m"),
    "a mask that may repeat a single key": graph(
        SCORES + "w = Where(m, s, low) " + END.format("w"), inputs=", bool[5,7] m").replace(
            "[N,3,7,8] k", "[N,3,K,8] k"),
    "a table with an infinity": graph(
        "r = Gather<axis=0>(d, i) b = Unsqueeze(r, o) " + SCORES + "w = Add(s, b) " + END.format("w"), inputs=", int64[3,5,7] i",
        constants="float[3] d = {1,-4,inf}, int64[1] o = {0}"),
    "a bias of each head that may be infinite": graph(
        SCORES + "w = Add(s, m) " + END.format("w"), inputs=", float[1,3,5,7] m"),
    "a sum that overflows": graph(
        "f = Where(c2, o, c) u = Add(f, o) " + SCORES + "w = Add(s, u) " + END.format("w"),
        inputs=", bool[1,3,5,7] c2", constants="float o = {-3.402823e38}"),
    "two masks in one layer that differ in what they are behind": graph(
        SCORES + "a = Add(s, m) b = Mul(a, c) d = Add(b, m) " + END.format("d"),
        inputs=", float[5,7] m"),
    "a negative scale": graph(
        SCORES + "a = Mul(s, e) " + END.format("a"), constants="float e = {-0.5}"),
    "a divisor of 0": graph(
        SCORES + "a = Div(s, e) " + END.format("a"), constants="float e = {0.0}"),
    "scales of each query": graph(
        SCORES + "a = Mul(s, e) " + END.format("a"), constants=tensor("e", (3, 5, 1))),
    "a vector of scales": graph(
        SCORES + "a = Mul(s, e) " + END.format("a"), constants=tensor("e", (7,))),
    "weights that are an output": graph(SCORES + END.format("s")).replace(
        " y) <", " y, float[N,3,5,7] p) <"),
    "scores that something else reads": graph(SCORES + END.format("s") + " z = Neg(s)").replace(
        " y) <", " y, float[N,3,5,7] z) <"),
    "heads that broadcast": graph(SCORES + END.format("s")).replace("[N,3,7,8] k", "[N,1,7,8] k"),
    "doubles": graph(SCORES + END.format("s")).replace("float[", "double["),
    "integers for keys": graph("s = MatMul(q, k) y = Softmax(s)").replace(
        "k, float[N,3,7,6] v", "k").replace("[N,3,7,8]", "[N,3,8,6]"),
}  # fmt: skip


@pytest.mark.parametrize("before", KEPT.values(), ids=KEPT.keys())
def test_keeps(before: str) -> None:
    check_unchanged(fuse_attention, before)


def test_keys_and_values_that_are_copied_unlike_stay() -> None:
    check_refused(
        fuse_attention,
        "g (float[B,6,S,4] q, float[B,2,S,4] k, float[B,3,S,4] v) => (float[B,6,S,4] y) "
        "<int64[1] two = {2}, int64[5] thrice = {1,1,3,1,1}, int64[5] twice = {1,1,2,1,1}, "
        "int64[4] merged = {0,6,-1,4}> { k1 = Unsqueeze(k, two) k2 = Expand(k1, thrice) "
        "k3 = Reshape(k2, merged) v1 = Unsqueeze(v, two) v2 = Expand(v1, twice) "
        "v3 = Reshape(v2, merged) y = Attention(q, k3, v3) }",
        "the heads of keys and values are not repeated equally often",
    )


def test_models_are_raised_for_it_unless_that_is_forbidden() -> None:
    before = graph(SCORES + END.format("s"))
    check_unchanged(fuse_attention, before, opset=21)
    assert optimize(text.parse(before, 21)).opset_imports[""] == 23
    assert optimize(text.parse(before, 21), opset=21).opset_imports[""] == 21


def test_a_model_is_not_raised_for_what_stays_as_it_is() -> None:
    before = graph(
        SCORES + "b = Sqrt(m) w = Add(s, b) " + END.format("w"), inputs=", float[1,3,5,7] m"
    )
    assert optimize(text.parse(before, 21)).opset_imports[""] == 21


ROWS_SEEN = "bool[5,7] m = {" + ",".join(["0"] * 14 + ["1"] * 21) + "}"
LOWEST = "-3.4028235e38"


@pytest.mark.parametrize("low", ["-1e31", LOWEST])
def test_rows_that_see_no_key_are_averaged_as_before(low: str) -> None:
    before = graph(SCORES + "w = Where(m, s, low) " + END.format("w"), constants=ROWS_SEEN)
    check_operators(
        fuse_attention, before.replace("-1e31", low), ["Transpose", "Where", "Transpose", "Attention"], modes=("normal",),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("bias", "constants", "kinds"),
    [
        ("b = Where(m, no, low)", ROWS_SEEN + ", float no = {0}", ["Where"] * 2),
        ("", "float[5,7] b = {" + ",".join([LOWEST] * 14 + ["1"] * 21) + "}", []),
    ],
)
def test_added_rows_without_a_key_are_averaged_as_before(
    bias: str, constants: str, kinds: list[str]
) -> None:
    before = graph(f"{SCORES} {bias} w = Add(s, b) " + END.format("w"), constants=constants)
    model = check_operators(
        fuse_attention, before.replace("-1e31", LOWEST), ["Transpose", *kinds[1:], "Transpose", "Attention"], modes=("normal",),
    )  # fmt: skip
    assert len(model.graph.node(-1).inputs) == 4


@pytest.mark.parametrize(
    ("lengths", "fused"),
    [("[1]", True), ("[1:]", False), ("NonZero", False)],
    ids=["one more", "one less", "as many as are found"],
)
def test_sizes_that_may_be_0_stay(lengths: str, fused: bool) -> None:
    """Runtimes support no attention of zero keys or of an empty batch."""
    made = {
        "[1]": "k = Concat<axis=2>(k0, k0)",
        "[1:]": "k = Slice(k0, one, end, two)",
        "NonZero": "n = NonZero(flags) i = Squeeze(n, zero) k = Gather<axis=2>(k0, i)",
    }[lengths]
    ints = "int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] end = {9999}"
    source = text.parse(
        f"g (float[N,3,5,8] q, float[N,3,S,8] k0, bool[S] flags) => (float[N,3,5,8] y) <{ints}> "
        f"{{ {made} {SCORES} p = Softmax(s) y = MatMul(p, k) }}",
        23,
    )
    model = optimize(source, pipeline="fuse-attention")
    assert ("Attention" in [node.op_type for node in model.graph]) == fused


NEO_MASKS = {"shown": "Where(m, s, low)", "hidden": "Where(m, low, s)"}
CAUSAL = (
    "bool[5,7] m = {"
    + ",".join("1" if j <= i + 2 else "0" for i in range(5) for j in range(7))
    + "}"
)


def neo(mask: str, low: str = "-1e31", biases: str = "") -> str:
    body = f"u = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, u) w = {mask} z = Add(w, t) "
    constants = CAUSAL if biases else f"{CAUSAL}, float[5,7] t = {{{','.join(['0.5'] * 35)}}}"
    before = graph(body + END.format("z"), inputs=biases, constants=constants)
    return before.replace("-1e31", low)


@pytest.mark.parametrize("mask", NEO_MASKS.values(), ids=NEO_MASKS)
def test_a_mask_that_replaces_scores_before_a_bias_is_added(mask: str) -> None:
    """GPT-Neo applies the causal mask first, then the mask of tokens."""
    model = check_operators(
        fuse_attention, neo(mask), ["Transpose", "Where", "Add", "Transpose", "Attention"], modes=("normal",),
    )  # fmt: skip
    assert len(model.graph.node(-1).inputs) == 4


NEO_KEPT = {
    "the masking number is not below all scores": neo(NEO_MASKS["shown"], low="-1e3"),
    "the bias may be infinite, or hide all keys of a row": neo(
        NEO_MASKS["shown"], biases=", float[3,5,7] t"
    ),
}


@pytest.mark.parametrize("why", NEO_KEPT)
def test_a_mask_before_a_bias_is_kept_and_told(why: str) -> None:
    check_refused(fuse_attention, NEO_KEPT[why], why)
