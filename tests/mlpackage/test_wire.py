"""The wire format: every message comes back, and broken bytes raise one kind of error."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.mlpackage.schema import MESSAGES
from smelt.mlpackage.wire import MalformedMessage, decode, encode, varint

OPERATION = {
    "type": "concat",
    "inputs": {
        "values": {"arguments": [{"name": "a"}, {"name": "b"}]},
        "axis": {
            "arguments": [
                {"value": {"immediateValue": {"tensor": {"ints": {"values": np.array([-1])}}}}}
            ]
        },
    },
    "outputs": [
        {
            "name": "y",
            "type": {
                "tensorType": {
                    "dataType": 11,
                    "rank": 1,
                    "dimensions": [{"unknown": {"variadic": False}}],
                }
            },
        }
    ],
    "attributes": {"name": {"immediateValue": {"tensor": {"strings": {"values": ["y"]}}}}},
}


def plain(value):
    """Return a message with lists for arrays, for comparison."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def test_a_message_comes_back():
    data = encode("Operation", OPERATION)
    assert plain(decode("Operation", data)) == plain(OPERATION)
    assert encode("Operation", decode("Operation", data)) == data


@pytest.mark.parametrize(
    ("number", "digits"),
    [
        (0, b"\0"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (300, b"\xac\x02"),
        (-1, b"\xff" * 9 + b"\x01"),
    ],
)
def test_numbers_in_base_128(number, digits):
    assert varint(number) == digits
    assert decode("Program", b"\x08" + digits) == {"version": number}


@pytest.mark.parametrize("kind", ["floats", "doubles", "ints", "bools"])
def test_packed_arrays(kind):
    message = kind.capitalize()
    values = np.array([0, 1, 1, 0]) if kind == "bools" else np.array([0, -1, 7, 2**30])
    assert (
        decode(message, encode(message, {"values": values}))["values"].tolist() == values.tolist()
    )


def test_a_packed_field_may_come_in_pieces():
    pieces = encode("Ints", {"values": [1, 2]}) + b"\x08\x03"
    assert decode("Ints", pieces)["values"].tolist() == [1, 2, 3]


def test_unknown_fields_are_left_out():
    assert decode("Program", b"\xf8\x3f\x05" + b"\x08\x01") == {"version": 1}


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="no field"):
        encode("Program", {"versoin": 1})


def test_broken_bytes_raise_one_error():
    data = encode("Operation", OPERATION)
    for cut in range(1, len(data)):
        try:
            decode("Operation", data[:cut])
        except MalformedMessage:
            continue
    rng = np.random.default_rng(0)
    for _ in range(300):
        broken = bytearray(data)
        broken[rng.integers(len(data))] = rng.integers(256)
        try:
            decode("Operation", bytes(broken))
        except MalformedMessage:
            continue


def test_endless_nesting_is_refused():
    data = b""
    for _ in range(2000):
        data = encode("Block", {"operations": [encode("Operation", {"blocks": [data]})]})
    with pytest.raises(MalformedMessage, match="nested"):
        decode("Block", data)


def test_the_schema_is_that_of_coremltools():
    pytest.importorskip("coremltools", reason="needs the extra coreml")
    from coremltools.proto import MIL_pb2, Model_pb2

    renamed = {
        "ArrayType": "ArrayFeatureType",
        "ImageType": "ImageFeatureType",
        "StateFeature": "StateFeatureType",
    }
    inner = {
        "Binding": "Argument",
        "Floats": "TensorValue",
        "ImmediateValue": "Value",
        "BlobFileValue": "Value",
    }
    checked = 0
    for descriptors in (
        MIL_pb2.DESCRIPTOR,
        Model_pb2.DESCRIPTOR,
        Model_pb2.FeatureTypes__pb2.DESCRIPTOR,
    ):
        for name, fields in MESSAGES.items():
            descriptor = descriptors.message_types_by_name.get(renamed.get(name, name))
            if descriptor is None or name in inner:
                continue
            checked += 1
            theirs = {field.number: field.name for field in descriptor.fields}
            assert {field.number: field.name for field in fields}.items() <= theirs.items(), name
    assert checked >= 20
