"""``smelt diff``: counts of what differs, then the text; its status is that of diff(1)."""

import onnx
import pytest
from small_models import HEADER, MODEL

OTHER = MODEL.replace("Relu(h)", "Neg(h)")


@pytest.fixture
def compare(smelt, write, document):
    """What ``smelt diff`` says of two models as text: lines and the document."""

    def call(a, b, *options):
        first, second = write(a, "a.onnx"), write(b, "b.onnx")
        result = smelt("diff", first, second, *options)
        again = smelt("diff", first, second, "--json")
        assert result.exit_code == again.exit_code
        return result, result.stdout.splitlines(), document(again)

    return call


def test_a_model_and_itself(compare):
    result, lines, facts = compare(MODEL, MODEL)
    assert (result.exit_code, lines) == (0, ["the same nodes"])
    assert facts["text"] == facts["removed"] == facts["interface"] == []


def test_nodes_with_types_and_counts(compare, tmp_path):
    result, lines, facts = compare(MODEL, OTHER)
    assert result.exit_code == 1
    assert "Neg             0      1  +1" in lines
    assert "all nodes       3      3  +0" in lines
    assert "weights: 1 -> 1, 64 -> 64 bytes" in lines
    text = lines.index(f"--- {tmp_path / 'a.onnx'}")
    assert lines[text:] == [
        f"--- {tmp_path / 'a.onnx'}",
        f"+++ {tmp_path / 'b.onnx'}",
        "@@ -8,5 +8,5 @@",
        " > {",
        "   a = Identity(x)  # float[B,4]",
        "   h = MatMul(a, w)  # float[B,4]",
        "-  y = Relu(h)  # float[B,4]",
        "+  y = Neg(h)  # float[B,4]",
        " }",
    ]
    assert facts["operators"] == {"Neg": 1, "Relu": -1}
    assert facts["operator_counts"]["Identity"] == [1, 1]
    assert (facts["removed"], facts["added"]) == (["y = Relu(h)"], ["y = Neg(h)"])


def test_the_counts_alone(compare):
    result, lines, _ = compare(MODEL, OTHER, "--stat")
    assert result.exit_code == 1
    assert not any(line.startswith(("---", "@@")) for line in lines)
    assert any(line.startswith("Relu") for line in lines)


def test_versions_and_the_interface(compare):
    later = MODEL.replace('"" : 20', '"" : 21, "mine" : 1').replace("float[B,4] y", "float[B,4] z")
    later = later.replace("y = Relu", "z = Relu")
    _, lines, facts = compare(MODEL, later)
    assert lines[:3] == [
        "opset: 20 -> 21",
        "opset mine: none -> 1",
        "! output 'y' is now called 'z'",
    ]
    assert facts["versions"] == {"opset": [20, 21], "opset mine": [None, 1]}


INTERFACES = {
    "a size that was open": ("float[B,4] x", "float[2,4] x", "input 'x' was float[B,4], is float[2,4]"),
    "a dim of another name": ("float[B,4] x", "float[N,4] x", "input 'x' was float[B,4], is float[N,4]"),
    "a dim without a name": ("float[B,4] x", "float[?,4] x", "input 'x' was float[B,4], is float[?,4]"),
    "a size that is open now": ("float[B,4] y", "float[B,K] y", "output 'y' was float[B,4], is float[B,K]"),
    "another type": ("int64[2] u", "int32[2] u", "input 'u' was int64[2], is int32[2]"),
    "another rank": ("int64[2] u", "int64[2,1] u", "input 'u' was int64[2], is int64[2,1]"),
    "another name": ("int64[2] u", "int64[2] t", "input 'u' is now called 't'"),
    "one more": ("int64[2] u", "int64[2] u, int64[3] t", "input 't' is new: int64[3]"),
    "one less": (", int64[2] u", "", "input 'u' is gone"),
    "another order": ("float[B,4] x, int64[2] u", "int64[2] u, float[B,4] x",
                      "the inputs x, u come in another order: u, x"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "sentence"), INTERFACES.values(), ids=INTERFACES)
def test_each_change_of_the_interface_is_told_and_is_a_difference(compare, old, new, sentence):
    model = HEADER + "g (float[B,4] x, int64[2] u) => (float[B,4] y) { y = Relu(x) }"
    assert old in model
    result, lines, facts = compare(model, model.replace(old, new, 1))
    assert result.exit_code == 1
    assert f"! {sentence}" in lines
    assert sentence in facts["interface"]


def test_a_default_is_part_of_the_interface(compare):
    weight = HEADER + "g (float[2] x) => (float[2] y) <float[2] v = {1,2}> { y = Add(x, v) }"
    given = weight.replace("float[2] x)", "float[2] x, float[2] v)")
    result, lines, _ = compare(given, given.replace("<float[2] v = {1,2}>", ""))
    assert (result.exit_code, lines[0]) == (1, "! input 'v' lost its default")


def test_unnamed_dims_have_no_names_to_compare(compare):
    model = HEADER + "g (float[?,4] x, float[?,4] u) => (float[?,4] y) { y = Add(x, u) }"
    lines = compare(model, model.replace("float[?,4] x", "float[3,4] x"))[1]
    assert [line for line in lines if line.startswith("!")] == [
        "! input 'x' was float[?,4], is float[3,4]"
    ]


def test_weights_that_came_went_or_changed(compare):
    weights = "float[9] v = {1,2,3,4,5,6,7,8,9}, float[2] gone = {1,2}"
    a = HEADER + f"g (float[9] x) => (float[9] y) <{weights}> {{ y = Add(x, v) }}"
    b = a.replace("7,8,9", "7,8,0").replace("float[2] gone = {1,2}", "int64[3] came = {1,2,3}")
    result, lines, facts = compare(a, b)
    assert result.exit_code == 1
    assert "weights: 2 -> 2, 44 -> 60 bytes" in lines
    assert "  - gone float[2], 8 bytes" in lines
    assert "  + came int64[3], 24 bytes" in lines
    assert "  ! v float[9], 36 bytes: other elements" in lines
    assert any(line.startswith("-  float[9] v = {...},  # 36 bytes, #") for line in lines)
    assert facts["weights"]["changed"][0][0] == {"name": "v", "type": "float[9]", "bytes": 36}
    assert facts["removed"] == []


def test_a_weight_of_another_type(compare):
    a = HEADER + "g (float[2] x) => (float[2] y) <float[2] v = {1,2}> { y = Add(x, v) }"
    b = a.replace("float[2] v = {1,2}", "float[1] v = {1}")
    assert "  ! v float[2], 8 bytes: now float[1]" in compare(a, b)[1]


def test_many_weights_are_counted(compare):
    def model(prefix):
        weights = ", ".join(f"float[1] {prefix}{i} = {{{i}}}" for i in range(12))
        return HEADER + f"g (float[1] x) => (float[1] y) <{weights}> {{ y = Relu(x) }}"

    lines = compare(model("a"), model("b"))[1]
    assert "  - and 4 others" in lines
    assert "  + and 4 others" in lines


def test_the_order_of_nodes_is_no_difference(compare):
    a = HEADER + "g (float[4] x) => (float[4] y) { a = Neg(x)  b = Abs(x)  y = Add(a, b) }"
    b = a.replace("a = Neg(x)  b = Abs(x)", "b = Abs(x)  a = Neg(x)")
    result, lines, facts = compare(a, b)
    assert (result.exit_code, lines) == (0, ["the same nodes, in another order"])
    assert facts["text"]


def test_graphs_below_are_compared_too(compare):
    a = HEADER + (
        "g (float[4] x, bool c) => (float[4] y) { y = If(c) <"
        "then_branch = t () => (float[4] p) { p = Relu(x) },"
        "else_branch = e () => (float[4] q) { q = Neg(x) }> }"
    )
    _, lines, facts = compare(a, a.replace("Neg", "Abs"))
    assert "-      q = Neg(x)  # float[4]" in lines
    assert facts["operators"] == {"Abs": 1, "Neg": -1}


def test_a_type_that_only_one_side_declares_is_no_difference(smelt, write):
    path = write()
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    assert len(model.graph.value_info) == 2
    onnx.save(model, path.with_name("declared.onnx"))
    result = smelt("diff", path, path.with_name("declared.onnx"))
    assert (result.exit_code, result.stdout) == (0, "the same nodes\n")


def test_standard_input_and_hostile_names(smelt, write):
    hostile = onnx.parser.parse_model(MODEL)
    hostile.graph.node[1].output[0] = hostile.graph.node[2].input[0] = "h\x1b[2J\n+ y"
    path = write(name="a.onnx")
    result = smelt("diff", path, "-", stdin=hostile.SerializeToString())
    assert result.exit_code == 1
    assert all(line.isprintable() for line in result.stdout.splitlines())
    assert r"+  h\x1b[2J\n+ y = MatMul(a, w)  # float[B,4]" in result.stdout.splitlines()
