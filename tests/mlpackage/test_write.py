"""Packages as files: coremltools reads program, types and weights back, and two writes agree."""

from __future__ import annotations

import json

import numpy as np
import pytest

from smelt.mlpackage.interface import ArrayElement, Feature, Interface, MultiArray
from smelt.mlpackage.program import (
    Block,
    Constant,
    Element,
    Function,
    Named,
    Operation,
    Package,
    Program,
    TensorType,
)
from smelt.mlpackage.schema import MESSAGES
from smelt.mlpackage.weights import WeightFile, pack, unpack
from smelt.mlpackage.wire import decode
from smelt.mlpackage.write import MANIFEST, MODEL_FILE, WEIGHT_FILE, write


def text(value: str) -> Constant:
    return Constant(TensorType(Element.STRING), value)


def const(name: str, array: np.ndarray, element: Element, *, in_file: bool = False) -> Operation:
    kind = TensorType(element, array.shape)
    attributes = {"name": text(name), "val": Constant(kind, array, in_file)}
    return Operation("const", {}, [Named(name, kind)], attributes=attributes)


WEIGHTS = np.arange(12, dtype=np.float32).reshape(3, 4)


def linear() -> Package:
    kind = TensorType(Element.FLOAT32, (None, 4))
    result = TensorType(Element.FLOAT32, (None, 3))
    inputs = {"x": ["x"], "weight": ["w"], "bias": ["b"]}
    operations = [
        const("w", WEIGHTS, Element.FLOAT32, in_file=True),
        const("b", np.zeros(3, np.float32), Element.FLOAT32),
        Operation("linear", inputs, [Named("y", result)], attributes={"name": text("y")}),
    ]
    body = Block(operations, ["y"])
    main = Function([Named("x", kind)], "CoreML7", {"CoreML7": body})
    described = Interface(
        [Feature("x", MultiArray(ArrayElement.FLOAT32, (1, 4), ((1, 8), (4, 4))))],
        [Feature("y", MultiArray(ArrayElement.FLOAT32))],
    )
    return Package(8, Program({"main": main}), {"main": described})


def test_two_writes_give_the_same_bytes():
    assert write(linear()) == write(linear())


def test_the_files_of_a_package():
    files = write(linear())
    assert sorted(files) == sorted([MANIFEST, MODEL_FILE, WEIGHT_FILE])
    manifest = json.loads(files[MANIFEST])
    items = manifest["itemInfoEntries"]
    assert items[manifest["rootModelIdentifier"]]["path"] == "com.apple.CoreML/model.mlmodel"
    model = decode("Model", files[MODEL_FILE])
    operations = model["mlProgram"]["functions"]["main"]["block_specializations"]["CoreML7"][
        "operations"
    ]
    assert [each["type"] for each in operations] == ["const", "const", "linear"]
    offset = operations[0]["attributes"]["val"]["blobFileValue"]["offset"]
    assert offset == 64
    start = int.from_bytes(files[WEIGHT_FILE][offset + 16 : offset + 24], "little")
    assert start % 64 == 0
    assert np.array_equal(
        np.frombuffer(files[WEIGHT_FILE], "<f4", 12, start).reshape(3, 4), WEIGHTS
    )


def test_equal_arrays_have_one_record():
    weights = WeightFile()
    first = weights.add(WEIGHTS, Element.FLOAT32)
    assert weights.add(WEIGHTS.copy(), Element.FLOAT32) == first
    assert weights.add(WEIGHTS + 1, Element.FLOAT32) > first
    assert len(b"".join(weights.pieces())) == weights.size


@pytest.mark.parametrize("element", [each for each in Element if each != Element.STRING])
@pytest.mark.parametrize("count", [1, 7, 64])
def test_elements_come_back_from_their_bits(element, count):
    rng = np.random.default_rng(0)
    bits = element.bits
    array = rng.integers(0, 2 ** min(bits, 8), count).astype(np.uint8)
    if element == Element.INT4:
        array = (array.astype(np.int8) - 8).astype(np.int8)
    array = array > 7 if element == Element.BOOL else array.astype(element.numpy)
    data = pack(array, element)
    assert len(data) == -(-count * bits // 8)
    assert np.array_equal(unpack(data, element, count), array)


def test_coremltools_reads_the_package(tmp_path):
    pytest.importorskip("coremltools", reason="needs the extra coreml")
    from coremltools.libmilstoragepython import _BlobStorageReader
    from coremltools.proto import Model_pb2

    for name, data in write(linear()).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    spec = Model_pb2.Model.FromString((tmp_path / MODEL_FILE).read_bytes())
    assert spec.SerializeToString(deterministic=True) == Model_pb2.Model.FromString(
        spec.SerializeToString()
    ).SerializeToString(deterministic=True)
    function = spec.mlProgram.functions["main"]
    operations = function.block_specializations["CoreML7"].operations
    assert operations[2].inputs["weight"].arguments[0].name == "w"
    offset = operations[0].attributes["val"].blobFileValue.offset
    read = _BlobStorageReader(str(tmp_path / WEIGHT_FILE)).read_float_data(offset)
    assert np.array_equal(np.array(read).reshape(3, 4), WEIGHTS)
    assert spec.description.input[0].type.multiArrayType.shapeRange.sizeRanges[0].upperBound == 8


@pytest.mark.parametrize(
    "element",
    [
        Element.INT4,
        Element.UINT1,
        Element.UINT2,
        Element.UINT3,
        Element.UINT4,
        Element.UINT6,
        Element.INT8,
        Element.UINT8,
        Element.INT16,
        Element.UINT16,
    ],
)
def test_coremltools_reads_packed_weights(element, tmp_path):
    pytest.importorskip("coremltools", reason="needs the extra coreml")
    from coremltools.libmilstoragepython import _BlobStorageReader

    low = -8 if element == Element.INT4 else 0
    array = (np.arange(37) % 2 ** min(element.bits, 7) + low).astype(element.numpy)
    weights = WeightFile()
    offset = weights.add(array, element)
    (tmp_path / "weight.bin").write_bytes(b"".join(weights.pieces()))
    reader = _BlobStorageReader(str(tmp_path / "weight.bin"))
    read = getattr(reader, f"read_{element.name.lower()}_data")(offset)
    assert np.array_equal(np.asarray(read).astype(element.numpy), array)


def test_every_message_is_reachable_from_the_model():
    reached, stack = set(), ["Model"]
    while stack:
        name = stack.pop()
        if name in MESSAGES and name not in reached:
            reached.add(name)
            stack += [field.kind for field in MESSAGES[name]]
    assert reached == set(MESSAGES)
