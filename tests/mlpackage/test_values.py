"""Types and constants of damaged programs: what is read, and the reason of each refusal."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from smelt.errors import SmeltError
from smelt.mlpackage.folder import WeightFiles
from smelt.mlpackage.program import DictionaryType, Element, ListType, StateType, TensorType
from smelt.mlpackage.values import constant_of, type_of

WIDEST = (1 << 31) - 1


def dims(*sizes: int | None) -> list[dict]:
    return [{} if size is None else {"constant": {"size": size}} for size in sizes]


def tensor(element: int, *sizes: int | None, rank: int | None = None) -> dict:
    """Return the message of a tensor type."""
    held = {"dataType": element, "dimensions": dims(*sizes)}
    return {"tensorType": held | {"rank": len(sizes) if rank is None else rank}}


def value(element: int, *sizes: int | None, **field: object) -> dict:
    """Return the message of a constant that stands in the program."""
    return {
        "type": tensor(element, *sizes),
        "immediateValue": {"tensor": {name: {"values": each} for name, each in field.items()}},
    }


TYPES = [
    (tensor(11), TensorType(Element.FLOAT32, ())),
    (tensor(11, None, 0), TensorType(Element.FLOAT32, (None, 0))),
    (tensor(11, rank=-1), TensorType(Element.FLOAT32, None)),
    ({"tensorType": {"dataType": 1}}, TensorType(Element.BOOL, ())),
    (tensor(11, WIDEST, 512, 1), TensorType(Element.FLOAT32, (WIDEST, 512, 1))),
    (tensor(11, 1 << 30, None, 1 << 10), TensorType(Element.FLOAT32, (1 << 30, None, 1 << 10))),
    (tensor(11, 1 << 30, (1 << 10) + 1), "E501 a tensor of 1073741824 x 1025 elements"),
    (tensor(11, WIDEST + 1), "E302 a dim of 2147483648 elements"),
    (tensor(11, -1), "E302 a dim of -1 elements"),
    (tensor(11, 2, rank=0), "E302 a tensor of rank 0 has 1 dims"),
    (tensor(11, 2, rank=2), "E302 a tensor of rank 2 has 1 dims"),
    (tensor(9, 2), "E302 the element type 9 does not exist"),
    ({"tensorType": {}}, "E302 the element type 0 does not exist"),
    ({"tensorType": {"dataType": 1, "dimensions": [{"constant": {}}], "rank": 1}}, TensorType(Element.BOOL, (0,))),
    ({"listType": {"type": tensor(23)}}, ListType(TensorType(Element.INT32))),
    ({"listType": {}}, "E302 a value has no type"),
    ({"dictionaryType": {"keyType": tensor(2), "valueType": tensor(1)}}, DictionaryType(TensorType(Element.STRING), TensorType(Element.BOOL))),
    ({"dictionaryType": {"keyType": tensor(2)}}, "E302 a value has no type"),
    ({"stateType": {"wrappedType": tensor(10, 4)}}, StateType(TensorType(Element.FLOAT16, (4,)))),
    ({}, "E302 a value has no type"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "expected"), TYPES)
def test_types(message: dict, expected: object) -> None:
    if not isinstance(expected, str):
        assert type_of(message) == expected
        return
    assert refusal(lambda: type_of(message)) == expected


def refusal(call) -> str:
    """Return the code and the reason of the error that ``call`` raises."""
    with pytest.raises(SmeltError) as caught:
        call()
    text = caught.value.what if caught.value.code == "E501" else caught.value.why
    return f"{caught.value.code} {text}"


CONSTANTS = [
    (value(11, 2, floats=np.array([1.0, 2], np.float32)), np.array([1, 2], np.float32)),
    (value(11, floats=np.array([1.0], np.float32)), np.array(1, np.float32)),
    (value(10, 1, doubles=np.array([0.5])), np.array([0.5], np.float16)),
    (value(31, 1, ints=np.array([255])), np.array([255], np.uint8)),
    (value(24, 1, longInts=np.array([1 << 40])), np.array([1 << 40])),
    (value(1, 2, bools=np.array([True, False])), np.array([True, False])),
    (value(2, 2, strings=["a", "b"]), np.array(["a", "b"])),
    (value(2, 2, 1, strings=["a", "b"]), np.array([["a"], ["b"]])),
    (value(2, strings=["a"]), "a"),
    (value(2, 0), np.zeros(0, np.str_)),
    (value(25, 3, bytes=b"\x98\x0a"), np.array([-8, -7, -6], np.int8)),
    (value(21, 2, bytes=b"\xff\x01"), np.array([-1, 1], np.int8)),
    (value(11, 0, 3), np.zeros((0, 3), np.float32)),
    (value(21, 0, bytes=b""), np.zeros(0, np.int8)),
    (value(11, 0, floats=np.zeros(0)), np.zeros(0, np.float32)),
    (value(11, 1), "E302 a constant of type float32 holds nothing"),
    (value(11, 1, ints=np.array([1])), "E302 a constant of type float32 holds ['ints']"),
    (value(23, 1, floats=np.array([1.0])), "E302 a constant of type int32 holds ['floats']"),
    (value(1, 1, ints=np.array([1])), "E302 a constant of type bool holds ['ints']"),
    (value(11, 2, floats=np.zeros(3)), "E302 a constant of 2 elements holds 3"),
    (value(11, 2, floats=np.zeros(1)), "E302 a constant of 2 elements holds 1"),
    (value(2, 2, strings=["a"]), "E302 a constant of 2 texts holds 1"),
    (value(2, strings=[]), "E302 a constant of 1 texts holds 0"),
    (value(25, 3, bytes=b"\x98"), "E302 a constant of 2 bytes holds 1"),
    (value(25, 2, bytes=b"\x98\0"), "E302 a constant of 1 bytes holds 2"),
    (value(11, None, floats=np.zeros(1)), "E302 a constant has an unknown size"),
    ({"type": tensor(11, rank=-1)}, "E302 a constant has an unknown size"),
    ({"type": {"stateType": {"wrappedType": tensor(10)}}}, "E302 a state cannot be a constant"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "expected"), CONSTANTS)
def test_constants_in_place(message: dict, expected: object) -> None:
    if isinstance(expected, str) and expected.startswith("E"):
        assert refusal(lambda: constant_of(message, WeightFiles(None))) == expected
        return
    found = constant_of(message, WeightFiles(None))
    assert type(found.value) is type(expected)
    assert not found.in_file
    assert np.array_equal(found.value, expected)
    assert np.asarray(found.value).dtype == np.asarray(expected).dtype


def record(number: int, size: int, start: int, sentinel: int = 0xDEADBEEF) -> bytes:
    return struct.pack("<IIQQ", sentinel, number, size, start)


STORED = [
    # place of the record, the record, bytes of the file, the refusal
    (0, record(2, 8, 24), 32, None),
    (64, record(2, 8, 128), 136, None),
    (64, record(2, 8, 0), 88, None),
    (64, record(2, 8, 128), 135, "its data end at 136 in a file of 135 bytes"),
    (64, record(2, 8, 0), 87, "the file has 87 bytes, and records begin at multiples of 64"),
    (32, record(2, 8, 0), 128, "the file has 128 bytes, and records begin at multiples of 64"),
    (-64, record(2, 8, 0), 128, "the file has 128 bytes, and records begin at multiples of 64"),
    (64, record(2, 8, 0, 7), 128, "no record begins there"),
    (64, record(1, 8, 0), 128, "the record has elements of type 1, not float32"),
    (64, record(2, 4, 0), 128, "the record has 4 bytes for 2 elements of 32 bits"),
    (64, record(2, 12, 0), 128, "the record has 12 bytes for 2 elements of 32 bits"),
]


@pytest.mark.parametrize(("at", "head", "size", "why"), STORED)
def test_records_of_the_weight_file(
    at: int, head: bytes, size: int, why: str | None, tmp_path: Path
) -> None:
    data = bytearray(range(200))[: max(size, 0)]
    if at >= 0:
        data[at : at + len(head)] = head
    (tmp_path / "w").write_bytes(data[:size])
    place = {"fileName": "@model_path/w"} | ({"offset": at} if at else {})
    message = {"type": tensor(11, 2), "blobFileValue": place}
    if why is not None:
        assert refusal(lambda: constant_of(message, WeightFiles(tmp_path))) == f"E314 {why}"
        return
    found = constant_of(message, WeightFiles(tmp_path))
    start = int.from_bytes(head[16:], "little")
    assert found.in_file
    assert found.value.tobytes() == bytes(data[start : start + 8])


@pytest.mark.parametrize(
    "kind", [tensor(11, None), tensor(11, rank=-1), {"listType": {"type": tensor(11)}}]
)
def test_a_value_in_the_weight_file_has_known_sizes(kind: dict) -> None:
    message = {"type": kind, "blobFileValue": {"fileName": "@model_path/w"}}
    assert refusal(lambda: constant_of(message, WeightFiles(None))) == (
        "E302 a value in the weight file has no tensor type of known sizes"
    )
