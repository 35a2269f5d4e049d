"""Models from strangers: refused with a code, never a traceback, nothing outside the folder read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from smelt.errors import SmeltError
from smelt.frontends.onnx import load

PARSE = onnx.parser.parse_model
HEADER = '<ir_version: 10, opset_import: ["" : 20]> '


def code_of(source: onnx.ModelProto | bytes | Path, **options: object) -> str:
    with pytest.raises(SmeltError) as caught:
        load(source, **options)
    assert str(caught.value).startswith(caught.value.code)
    return caught.value.code


def graph(body: str, outputs: str = "float[4] y") -> onnx.ModelProto:
    return PARSE(f"{HEADER} g (float[4] x) => ({outputs}) {{ {body} }}")


GOOD = graph("y = Relu(x)").SerializeToString()
BYTES = {
    "empty": (b"", "E301"),
    "truncated": (GOOD[:-7], "E301"),
    "random": (bytes(range(256)) * 4, "E301"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(64), "E301"),
    "no graph": (onnx.ModelProto(ir_version=10).SerializeToString(), "E302"),
    "no opset": (
        onnx.ModelProto(ir_version=8, graph=onnx.GraphProto()).SerializeToString(),
        "E306",
    ),
}


@pytest.mark.parametrize(("data", "code"), BYTES.values(), ids=BYTES.keys())
def test_bytes_that_are_no_model(data: bytes, code: str) -> None:
    assert code_of(data) in (code, "E302")


def test_names_that_are_no_text() -> None:
    assert code_of(GOOD.replace(b"\x01x", b"\x01\xff")) == "E315"


def test_five_thousand_nested_branches() -> None:
    # Written field by field, because protobuf cannot even build it.
    inner = _field(1, _field(1, b"x") + _field(2, b"t") + _field(4, b"Identity"))
    for _ in range(5000):
        attribute = _field(1, b"then_branch") + _field(6, inner) + b"\xa0\x01\x05"
        inner = _field(
            1, _field(1, b"c") + _field(2, b"t") + _field(4, b"If") + _field(5, attribute)
        )
    model = b"\x08\x0a" + _field(7, inner) + _field(8, b"\x10\x14")
    assert code_of(model) == "E301"


def _field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def test_branches_nested_beyond_the_limit() -> None:
    node = helper.make_node("Identity", ["x"], ["t"])
    for level in range(70):
        branch = helper.make_graph(
            [node], f"g{level}", [], [helper.make_empty_tensor_value_info("t")]
        )
        node = helper.make_node("If", ["c"], ["t"], then_branch=branch, else_branch=branch)
        if level > 10:
            break
    model = graph("y = Relu(x)")
    model.graph.node.append(node)
    assert code_of(model) in ("E304", "E305", "E312")


STRUCTURE = {
    "a cycle": (graph("a = Add(x, b) b = Neg(a) y = Relu(b)"), "E303"),
    "a node that reads itself": (graph("a = Add(x, a) y = Relu(a)"), "E303"),
    "a value that nothing writes": (graph("y = Add(x, w)"), "E305"),
    "an output that nothing writes": (graph("a = Relu(x)"), "E305"),
    "an unknown operator": (graph("y = Reluu(x)"), "E307"),
    "too many inputs": (graph("y = Relu(x, x)"), "E308"),
    "too few inputs": (graph("y = Add(x)"), "E308"),
    "an unknown attribute": (graph("y = Relu<slope=1.0>(x)"), "E308"),
    "an attribute of another type": (graph("y = Concat<axis=0.5>(x)"), "E308"),
    "a missing attribute": (graph("y = Concat(x)"), "E308"),
    "float and int64": (graph("i = Cast<to=7>(x) y = Add(x, i)"), "E309"),
    "a type that the operator does not take": (graph("b = Not(x) y = Relu(x)"), "E309"),
    "shapes that cannot go together": (graph("s = Shape(x) y = MatMul(x, x)", "float y"), None),
}


@pytest.mark.parametrize(("model", "code"), STRUCTURE.values(), ids=STRUCTURE.keys())
def test_structure(model: onnx.ModelProto, code: str | None) -> None:
    if code is None:
        load(model)
    else:
        assert code_of(model) == code


def test_a_value_written_twice() -> None:
    model = graph("y = Relu(x)")
    model.graph.node.append(helper.make_node("Neg", ["x"], ["y"]))
    assert code_of(model) == "E304"


def test_a_domain_that_is_not_imported() -> None:
    model = graph("y = Relu(x)")
    model.graph.node[0].domain = "mine"
    assert code_of(model) == "E306"


def _weights(change: Callable[[TensorProto], None]) -> onnx.ModelProto:
    model = graph("y = Add(x, w)")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(4, np.float32), "w"))
    change(model.graph.initializer[0])
    return model


TENSORS = {
    "fewer bytes than dims": (lambda t: t.dims.append(2), "E311"),
    "more bytes than dims": (lambda t: t.dims.__setitem__(0, 3), "E311"),
    "a negative dim": (lambda t: t.dims.__setitem__(0, -4), "E311"),
    "no element type": (lambda t: setattr(t, "data_type", 0), "E311"),
    "an unknown element type": (lambda t: setattr(t, "data_type", 99), "E311"),
    "2^60 elements": (lambda t: t.dims.extend([2**30, 2**30]), "E501"),
}


@pytest.mark.parametrize(("change", "code"), TENSORS.values(), ids=TENSORS.keys())
def test_tensors(change: Callable[[TensorProto], None], code: str) -> None:
    assert code_of(_weights(change)) == code


def test_a_constant_of_a_trillion_elements_is_not_made() -> None:
    model = load(
        graph("s = Constant<value_ints=[1000000, 1000000]>() c = ConstantOfShape(s) y = Relu(x)")
    )
    assert len(model.graph) == 3


def external(folder: Path, location: str, **entries: str) -> Path:
    """A model in ``folder`` whose weight lies at ``location``."""

    def change(tensor: TensorProto) -> None:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in {"location": location, **entries}.items():
            tensor.external_data.add(key=key, value=value)

    path = folder / "m.onnx"
    path.write_bytes(_weights(change).SerializeToString())
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model folder beside a file that is not to be read."""
    inside = tmp_path / "model"
    inside.mkdir()
    (tmp_path / "secret").write_bytes(bytes(16))
    (inside / "w.bin").write_bytes(np.ones(4, np.float32).tobytes())
    return inside


def test_external_data_is_read_late(folder: Path) -> None:
    model = load(external(folder, "w.bin"))
    tensor = model.graph.initializers["w"].const_value
    assert tensor is not None
    np.testing.assert_array_equal(tensor.numpy(), np.ones(4, np.float32))


def test_external_data_escapes(folder: Path) -> None:
    secret = folder.parent / "secret"
    (folder / "symlink").symlink_to(secret)
    (folder / "sub").symlink_to(folder.parent)
    os.link(secret, folder / "hardlink")
    os.mkfifo(folder / "pipe")
    (folder / "directory").mkdir()
    for location in (
        *("../secret", str(secret), "symlink", "sub/secret", "hardlink", "pipe", "directory"),
        *("", ".", "a/../../secret", "C:\\secret", "file:///etc/passwd", "/dev/zero"),
    ):
        assert code_of(external(folder, location)) in ("E313", "E314"), location


ENTRIES = {
    "an offset beyond the file": {"offset": "8"},
    "a length beyond the dims": {"length": "64"},
    "a negative offset": {"offset": "-4"},
    "an offset that is no number": {"offset": "0x10"},
    "a huge offset": {"offset": "9" * 40},
    "an unknown key": {"__class__": "x"},
}


@pytest.mark.parametrize("entries", ENTRIES.values(), ids=ENTRIES.keys())
def test_external_data_that_lies(folder: Path, entries: dict[str, str]) -> None:
    assert code_of(external(folder, "w.bin", **entries)) == "E314"


def test_external_data_that_is_missing(folder: Path) -> None:
    assert code_of(external(folder, "none.bin")) == "E314"


def test_external_data_without_a_folder(folder: Path) -> None:
    assert code_of(external(folder, "w.bin").read_bytes()) == "E613"


def test_no_such_file(tmp_path: Path) -> None:
    assert code_of(tmp_path / "none.onnx") == "E609"
    assert code_of(lambda x: x) == "E301"
    assert code_of(None) == "E301"
    assert code_of(tmp_path) == "E609"


def test_functions_that_explode_are_refused() -> None:
    text = '<ir_version: 10, opset_import: ["" : 20, "f" : 1]> g (float[4] x) => (float[4] y) { y = f.F0(x) }\n'
    for level in range(11):
        calls = " ".join(
            f"v{i + 1} = {'f.F' + str(level + 1) if level < 10 else 'Relu'}(v{i})"
            for i in range(10)
        )
        text += f'<domain: "f", opset_import: ["" : 20, "f" : 1]> F{level} (v0) => (v10) {{ {calls} }}\n'
    assert code_of(PARSE(text)) == "E502"
    assert len(load(PARSE(text), inline=False).graph) == 1


def test_a_function_that_calls_itself() -> None:
    model = PARSE(
        '<ir_version: 10, opset_import: ["" : 20, "f" : 1]> g (float[4] x) => (float[4] y) { y = f.F(x) }'
        '<domain: "f", opset_import: ["" : 20, "f" : 1]> F (a) => (b) { b = f.F(a) }'
    )
    assert code_of(model) == "E316"


@pytest.mark.parametrize(
    ("operator", "opset", "named"), [("Exp", 12, "opset 13"), ("Not", 12, "")], ids=["Exp", "Not"]
)
def test_a_later_opset_is_named_that_takes_the_type(operator: str, opset: int, named: str) -> None:
    header = f'<ir_version: 8, opset_import: ["" : {opset}]> '
    model = PARSE(f"{header} g (bfloat16[4] x) => (bfloat16[4] y) {{ y = {operator}(x) }}")
    with pytest.raises(SmeltError) as caught:
        load(model)
    assert caught.value.code == "E309"
    assert ("opset" in caught.value.fix) == bool(named)
    assert named in caught.value.fix
