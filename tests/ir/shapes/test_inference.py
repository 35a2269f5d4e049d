"""Shape inference against the C++ inference of ONNX on all node models, and where it must not
guess.
"""

from __future__ import annotations

import warnings
from functools import cache

import onnx
import onnx_ir as ir
import pytest
from backend_cases import node_cases, tried_cases

from smelt.errors import InvalidModel
from smelt.ir import text
from smelt.ir.same_shape import conflicting_shapes, is_positive, same_shape
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.symbolic_dims.empty_dims import may_be_empty

EXACT_AT_LEAST = 1800


def stripped(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model without the types of its outputs and inner results."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    del copy.graph.value_info[:]
    for output in copy.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.ClearField("tensor_type")
    return copy


def inferred_by_cpp(proto: onnx.ModelProto) -> ir.Model:
    """Return the model with the shapes of the C++ inference; unchanged if that fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ir.from_proto(onnx.shape_inference.infer_shapes(proto))
        except onnx.shape_inference.InferenceError:
            return ir.from_proto(proto)


@cache
def verdicts() -> dict[str, list[str]]:
    """Count the outputs of all node models by how the inferred shape compares with the declared
    one.
    """
    found: dict[str, list[str]] = {"exact": [], "less": [], "wrong": [], "against C++": []}
    for case in tried_cases():
        bare = stripped(case.model)
        ours = ir.from_proto(bare)
        ShapeInference(ours).infer_model()
        theirs = inferred_by_cpp(bare)
        declared = ir.from_proto(case.model).graph.outputs
        for mine, cpp, right in zip(
            ours.graph.outputs, theirs.graph.outputs, declared, strict=True
        ):
            kind = "exact" if same_shape(mine.shape, right.shape) else "less"
            wrong_type = mine.dtype is not None and mine.dtype != right.dtype
            if conflicting_shapes(mine.shape, right.shape) or wrong_type:
                kind = "wrong"
            found[kind].append(case.name)
            if conflicting_shapes(mine.shape, cpp.shape):
                found["against C++"].append(case.name)
    return found


def test_no_node_model_is_inferred_wrong() -> None:
    assert not verdicts()["wrong"]
    assert not verdicts()["against C++"]


def test_most_node_models_are_inferred_exactly() -> None:
    share = len(tried_cases()) / len(node_cases())
    assert len(verdicts()["exact"]) >= 0.97 * share * EXACT_AT_LEAST


def shapes_of(graph: str, opset: int = 23) -> dict[str, str]:
    model = text.parse(graph, opset)
    ShapeInference(model).infer_model()
    values = [value for node in model.graph for value in node.outputs]
    return {
        v.name or "": "?" if v.shape is None else ",".join(str(dim) for dim in v.shape.dims)
        for v in values
    }


@pytest.mark.parametrize("rows", [1, 2, 512])
def test_positions_cut_to_a_table_fit_the_tokens_where_they_broadcast(rows: int) -> None:
    """S rows of a table of 512 are Min(512, S), which broadcasts with S only if it is S."""
    graph = (
        f"g (float[B,S] x) => (float[p,q] y) <float[1,{rows}] table = "
        f"{{{','.join('0' * rows)}}}, int64[1] zero = {{0}}, int64[1] one = {{1}}> "
        "{ n = Shape<start=1>(x) cut = Slice(table, zero, n, one) y = Add(x, cut) }"
    )
    assert shapes_of(graph)["y"] == "B,S"


def test_symbols_that_meet_in_a_broadcast_become_a_third() -> None:
    shapes = shapes_of(
        "g (float[N] x, float[M] z) => () { a = Add(x, z) b = Add(x, x) c = MatMul(x, x) }"
    )
    assert shapes["a"] not in ("N", "M", "?")
    assert shapes["b"] == "N"


@pytest.mark.parametrize("declared", ["K", "?", "M"])
@pytest.mark.parametrize("body", ["y = Add(x, z)", "y = Where(c, x, z)", "y = Max(x, z)"])
def test_neither_symbol_wins_where_an_output_is_declared(declared: str, body: str) -> None:
    shapes = shapes_of(f"g (bool c, float[N] x, float[M] z) => (float[{declared}] y) {{ {body} }}")
    assert shapes["y"] not in ("N", "M", "?")


def test_neither_symbol_wins_in_an_expand() -> None:
    shapes = shapes_of(
        "g (float[N,4] x, float[K] z) => () <int64[1] one = {1}> "
        "{ s = Shape(z) t = Concat<axis=0>(s, one) y = Expand(x, t) }"
    )
    assert shapes["y"] not in ("N,4", "K,4")


def test_batches_of_other_names_are_a_third() -> None:
    found = shapes_of("g (float[N,3,4] x, float[M,4,5] z) => () { y = MatMul(x, z) }")["y"]
    batch, *rest = found.split(",")
    assert rest == ["3", "5"]
    assert batch not in ("N", "M")


def test_data_dependent_sizes_stay_unknown() -> None:
    shapes = shapes_of(
        "g (float[N,4] x, int64[2] s, int64[k] axes) => () "
        "{ a, b = Split<axis=1>(x, s) c = Squeeze(x, axes) d = Squeeze(x) u = Unique<axis=0>(x) }"
    )
    assert shapes["a"].split(",")[0] == "N"
    assert not shapes["a"].split(",")[1].isdigit()
    assert shapes["c"] == shapes["d"] == "?"
    assert shapes["u"].endswith(",4")


def test_the_last_positions_of_a_table_fit_the_tokens_where_they_broadcast() -> None:
    """``biases[max(0, 64 - S):]`` has the last S of 64 rows."""
    graph = (
        "g (float[B,S] x, float[64] biases) => () { s = Shape<start=1>(x) w = Constant<value_ints=[64]>() "
        "zero = Constant<value_ints=[0]>() end = Constant<value_ints=[9223372036854775807]>() "
        "d = Sub(w, s) first = Max(d, zero) cut = Slice(biases, first, end, zero) y = Add(x, cut) }"
    )
    assert shapes_of(graph)["cut"] == "Min(S, 64)"
    assert shapes_of(graph)["y"] == "B,S"


@pytest.mark.parametrize(
    ("clip", "dim"),
    {
        "Clip(s, zero, w)": "Min(64, S)",
        "Clip(s, , w)": "Min(64, S)",
        "Clip(s, w)": "Max(64, S)",
        "Clip(s, zero)": "S",
        "Clip(s)": "S",
        "Clip(w, zero, s)": "Min(S, 64)",
        "Clip(s, zero, n)": None,
    }.items(),
)
def test_sizes_between_bounds(clip: str, dim: str | None) -> None:
    graph = (
        "g (float[B,S] x, int64 n) => () { v = Shape<start=1>(x) i = Constant<value_int=0>() s = Gather(v, i) "
        "w = Constant<value_int=64>() zero = Constant<value_int=0>() "
        f"c = {clip} o = Constant<value_ints=[1]>() t = Reshape(c, o) y = ConstantOfShape(t) }}"
    )
    with may_be_empty("S"):
        found = shapes_of(graph)["y"]
    assert found == dim if dim else found.isidentifier()


def test_the_number_of_axes_gives_the_rank() -> None:
    assert shapes_of("g (float[N,4] x, int64[1] axes) => () { c = Squeeze(x, axes) }")["c"] != "?"


def test_branches_that_differ() -> None:
    shapes = shapes_of(
        "g (float[2,3] x, bool c) => () { y = If(c) <then_branch = t () => (float[a,b] t) { t = Neg(x) },"
        "else_branch = e () => (float[p,q] e) { e = Transpose(x) }> z = Neg(y) }"
    )
    assert not set(shapes["z"].split(",")) & {"2", "3"}


def test_sizes_multiplied_and_summed_by_reductions() -> None:
    shapes = shapes_of(
        "g (float[B,3,T] x, int64[2] i, int64 f) => () <int64[2] i = {0, 2}, int64[1] a = {0}, float v = {1}> "
        "{ s = Shape(x) g = Gather(s, i) p = ReduceProd<keepdims=1>(g) t = ReduceSum<keepdims=0>(g) "
        "y = Expand(v, p) u = Unsqueeze(t, a) z = Expand(v, u) w = ReduceSum<noop_with_empty_axes=1>(g) "
        "n = Expand(v, w) }"
    )
    assert (shapes["y"], shapes["z"], shapes["n"].count(",")) == ("B*T", "B + T", 1)


def test_a_sum_of_many_unknown_numbers_is_unknown() -> None:
    """Its time would be quadratic in their number, and no shape has so many dims."""
    shapes = shapes_of(
        "g (bool[300] x) => () <int64[1] a = {0}, float v = {1}> "
        "{ c = Cast<to=7>(x) t = ReduceSum<keepdims=1>(c) y = Expand(v, t) }"
    )
    assert "+" not in shapes["y"]


def test_a_loop_state_that_no_iteration_reads_may_change_its_rank() -> None:
    """The last iteration writes it; a loop that may run none returns the initial state."""
    loop = (
        "g (float[3,B] x, int64 n) => () {{ c = Constant<value=bool {{1}}>() k = Constant<value=int64 {{4}}>() "
        "u = Constant<value=float {{0}}>() s, y = Loop({0}, c, u, x) <body = b (int64 i, bool d, float p, "
        "float[3,B] q) => (bool e, float[3,B] t, float[3,B] r) {{ e = Identity(d) r = Neg(q) t = Exp(r) }}> "
        "z = Neg(y) w = Neg(s) }}"
    )
    shapes = shapes_of(loop.format("k"))
    assert (shapes["z"], shapes["w"]) == ("3,B", "3,B")
    shapes = shapes_of(loop.format("n"))
    assert (shapes["z"], shapes["w"]) == ("3,B", "?")


def test_a_state_of_a_scan_keeps_its_shape_whatever_the_body_computes() -> None:
    shapes = shapes_of(
        "g (float[N] s, float[T,2] x) => () { y, z = Scan<num_scan_inputs=1, body = b "
        "(float[K] p, float[2] q) => (float[J] t, float[2] u) { t = other.Op(p) u = Neg(q) }>(s, x) }"
    )
    assert shapes["y"] == "N"


def test_a_loop_that_appends() -> None:
    shapes = shapes_of(
        "g (float[1] x, int64 n, bool c) => () { y = Loop(n, c, x) <body = b (int64 i, bool k, float[?] p) "
        "=> (bool k2, float[?] q) { k2 = Identity(k) q = Concat<axis=0>(p, p) }> z = Neg(y) }"
    )
    assert shapes["z"] not in ("1", "2")


def test_nested_loops_are_inferred_again_from_better_known_operands() -> None:
    """The number of rows of both states follows only from their initial shapes."""
    model = text.parse("""
        g (float[?,?] x, float[4,4] w, int64 n, bool c) => (float[?,?] y) {
            y = Loop(n, c, x) <body = outer (int64 i, bool k, float[?,?] p) => (bool m, float[?,?] q) {
                m = Identity(k)
                q = Loop(n, c, p) <body = inner (int64 j, bool l, float[?,?] r) => (bool o, float[?,?] s) {
                    o = Identity(l)
                    s = MatMul(r, w)
                }>
            }>
        }""")
    ShapeInference(model).infer_model()
    model.graph.inputs[0].shape = ir.Shape([3, 4])
    ShapeInference(model).infer_model()
    (loop,) = model.graph
    assert loop.outputs[0].shape == ir.Shape([3, 4])


def test_wrong_declared_shapes_of_inner_results_are_replaced() -> None:
    model = text.parse("g (float[2,3] x) => (float[2,3] y) { a = Neg(x) y = Neg(a) }")
    inner = model.graph[0].outputs[0]
    inner.shape, inner.type = ir.Shape([7, 7]), ir.TensorType(ir.DataType.FLOAT)
    ShapeInference(model).infer_model()
    assert inner.shape is not None
    assert inner.shape.dims == (2, 3)


def test_restore_interface_returns_the_declared_shapes() -> None:
    model = text.parse("g (float[?,3] x) => (float[?,q] y) { y = Neg(x) }")
    before = text.canonical(model)
    shapes = ShapeInference(model)
    shapes.infer_model()
    assert text.canonical(model) != before
    shapes.restore_interface()
    assert text.canonical(model) == before
    assert not model.graph[0].outputs[0].metadata_props


def test_elements_of_a_shape_are_known() -> None:
    model = text.parse(
        "g (float[N,8,4] x) => () { s = Shape(x) i = Constant<value_int=1>() d = Gather(s, i) }"
    )
    shapes = ShapeInference(model)
    shapes.infer_model()
    assert shapes.elements(model.graph[-1].outputs[0]) == [8]


def test_elements_of_a_slice_that_runs_backwards_are_not_tracked_wrongly() -> None:
    model = text.parse(
        "g (float[3,4,5,1] x) => () { s = Shape(x) a = Constant<value_ints=[-2]>() b = Constant<value_ints=[-5]>() "
        "c = Constant<value_ints=[0]>() d = Constant<value_ints=[-1]>() v = Slice(s, a, b, c, d) }"
    )
    shapes = ShapeInference(model)
    shapes.infer_model()
    assert shapes.elements(model.graph[-1].outputs[0]) in (None, [5, 4, 3])


def test_elements_of_a_vector_that_keeps_doubling_are_dropped() -> None:
    body = " ".join(f"v{i + 1} = Concat<axis=0>(v{i}, v{i})" for i in range(40))
    shapes = shapes_of(f"g (float[2] x) => () {{ v0 = Shape(x) {body} }}")
    assert shapes["v40"] == str(2**40)


def test_shapes_that_contradict_each_other() -> None:
    model = text.parse("g (float[2,3] x, float[4,5] z) => () { y = MatMul(x, z) }")
    with pytest.raises(InvalidModel) as caught:
        ShapeInference(model).infer_model()
    assert caught.value.code == "E317"
    assert "MatMul" in str(caught.value)


@pytest.mark.parametrize(
    ("dim", "positive"),
    [
        *((3, True), (0, False), ("N", True), ("2*N", True), ("N + M", True), ("N - 1", False)),
        *(("floor(N/2)", False), ("floor(N/2) + 1", True), ("Max(0, N - 1)", False)),
        *(("_d0", False), ("_d0 + N", False), (None, False)),
    ],
)
def test_dims_that_are_surely_1_or_more(dim: int | str | None, positive: bool) -> None:
    assert is_positive(dim if isinstance(dim, int) else ir.SymbolicDim(dim)) == positive


CHOOSES = """g (int32 i, int64 n, bool c, bool d) => (int32 o) {
one = Constant<value = int32 {1}>()
two = Constant<value = int32 {2}>()
o = Loop(n, c, i) <body = b (int64 k, bool go, int32 v) => (bool on, int32 w) {
on = Identity(go)
a = Where(d, one, two)
e = Where(on, one, two)
w = Mul(a, e)
}>
}"""


def test_unknown_sizes_in_bodies_get_their_own_symbols() -> None:
    model = text.parse(CHOOSES)
    shapes = ShapeInference(model)
    shapes.infer_model()
    body = model.graph[-1].attributes["body"].as_graph()
    on, *choices = body[0].outputs[0], *(n for n in body if n.op_type == "Where")
    anew = ir.node("Where", [on, *reversed(choices[0].inputs[1:])])
    body.insert_before(body[-1], anew)
    shapes.infer_node(anew)
    names = [shapes.elements(node.outputs[0]) for node in (*choices, anew)]
    assert len({str(name) for name in names}) == 3


def test_nodes_added_later_get_size_names_of_their_own() -> None:
    model = text.parse(CHOOSES)
    shapes = ShapeInference(model)
    shapes.infer_model()
    choices = [n for n in model.graph[-1].attributes["body"].as_graph() if n.op_type == "Where"]
    assert shapes.elements(choices[1].outputs[0]) is not None
    first = ir.node("Where", list(choices[0].inputs))
    choices[0].prepend(first)
    shapes.infer_model()
    names = [shapes.elements(node.outputs[0]) for node in (first, *choices)]
    assert len({str(name) for name in names}) == 3


def test_sizes_deduced_in_a_branch_do_not_hold_outside() -> None:
    shapes = shapes_of(
        "g (float[N,4] x, bool c) => () <int64[1] four = {4}, int64[1] one = {1}> {"
        "s = Shape<start=0, end=1>(x) r = Slice(x, one, s)"
        "y = If(c) <then_branch = t () => (float[4] a) { a = Reshape(x, four) },"
        "else_branch = e () => (float[4] b) { b = ReduceSum<keepdims=0>(x, one) }> }"
    )
    assert shapes["r"] == "Max(0, N - 1),4"
