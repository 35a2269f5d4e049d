"""The wire format: every message comes back, and broken bytes raise one kind of error."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.mlpackage.schema import MESSAGES
from smelt.mlpackage.wire import MalformedMessage, decode, encode, field_numbers, varint

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


@pytest.mark.parametrize(
    ("message", "data", "expected"),
    [
        ("Floats", b"\x08\x05", "an array of floats is cut off"),
        ("Floats", b"\x0a\x03abc", "an array of floats is cut off"),
        ("Doubles", b"\x0a\x04abcd", "an array of doubles is cut off"),
        ("Floats", b"\x0a\x04\0\0\x80\x3f", {"values": [1.0]}),
        ("Floats", b"\x0a\0", {"values": []}),
        ("Floats", b"\x0d\0\0\x80\x3f", {"values": [1.0]}),
        ("Doubles", b"\x09\0\0\0\0\0\0\xf0\x3f", {"values": [1.0]}),
        ("Ints", b"\x08\x05", {"values": [5]}),
        ("Ints", b"\x0a\x0b\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x07", {"values": [-1, 7]}),
        ("Bools", b"\x0a\x02\x01\0", {"values": [True, False]}),
        ("Program", b"\x08" + b"\xff" * 9 + b"\x01", {"version": -1}),
        ("Program", b"\x08" + b"\xff" * 8 + b"\x7f", {"version": (1 << 63) - 1}),
        ("Program", b"\x08" + b"\xff" * 10 + b"\x01", "a number is cut off"),
        ("Program", b"\x08\xff", "a number is cut off"),
        ("Program", b"\x08", "a number is cut off"),
        ("Program", b"\x0a\x01a", "Program.version is bytes instead of a number"),
        ("Program", b"\x18\x01", "Program.docString is a number instead of bytes"),
        ("Program", b"\x1a\x02\xff\xff", "Program.docString is not UTF-8"),
        ("Program", b"\x1a\x02a", "a field of 2 bytes is cut off after 1"),
        ("Program", b"\x1a\x02ab", {"docString": "ab"}),
        ("Program", b"\x7d\x01\x02\x03", "a field of 4 bytes is cut off after 3"),
        ("Program", b"\x7d\x01\x02\x03\x04\x08\x07", {"version": 7}),
        ("Program", b"\x79" + b"\x01" * 7, "a field of 8 bytes is cut off after 7"),
        ("Program", b"\x79" + b"\x01" * 8 + b"\x08\x07", {"version": 7}),
        ("Program", b"\x7b", "the wire type 3 does not exist"),
        ("Program", b"\x7e", "the wire type 6 does not exist"),
        ("Program", b"\x12\0", {"functions": {"": {}}}),
        ("Program", b"\x12\x05\x0a\x01f\x12\0", {"functions": {"f": {}}}),
        ("Program", b"\x12\x07\x12\0\x18\x05\x0a\x01f", {"functions": {"f": {}}}),
        ("Program", b"\x10\x05", "Program.functions is a number instead of bytes"),
        ("UnknownDimension", b"\x08\x02", {"variadic": True}),
        ("Block", b"\x12\x01a\x12\x01b", {"outputs": ["a", "b"]}),
        ("Bytes", b"\x0a\x02\xff\0", {"values": b"\xff\0"}),
        ("Metadata", b"\xa2\x06\x03\x12\x01v", {"userDefined": {"": "v"}}),
    ],
)
def test_bytes_to_fields(message, data, expected):
    if isinstance(expected, str):
        with pytest.raises(MalformedMessage, match=f"^{expected}$"):
            decode(message, data)
    else:
        assert plain(decode(message, data)) == expected


@pytest.mark.parametrize(
    ("data", "numbers"), [(b"", set()), (b"\x08\x05\x1a\x01a\xf8\x3f\x05", {1, 3, 1023})]
)
def test_numbers_of_fields(data, numbers):
    assert field_numbers(data) == numbers


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
