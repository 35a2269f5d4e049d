"""Files of safetensors: their numbers, what is wrong with a damaged one, an index of several."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from smelt.errors import InvalidModel
from smelt.frontends.weights.checkpoint import open_checkpoint

EMPTY = (2).to_bytes(8, "little") + b"{}"


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        (range(1, 9), "1 of the 9 files that it names are not in its folder: 0.safetensors"),
        ([3], "8 of the 9 .*: 0.*, 1.*, 2.*, 4.*, 5.safetensors and 3 more"),
        (range(9), None),
    ],
    ids=["one", "most", "none"],
)
def test_an_index_tells_which_of_its_files_are_missing(
    tmp_path: Path, there: range | list[int], missing: str | None
) -> None:
    for number in there:
        (tmp_path / f"{number}.safetensors").write_bytes(EMPTY)
    index = tmp_path / "model.safetensors.index.json"
    weights = {f"w{number}": f"{number}.safetensors" for number in range(9)}
    index.write_text(json.dumps({"weight_map": weights}))
    if missing is None:
        assert open_checkpoint(index) == {}
        return
    with pytest.raises(InvalidModel, match=missing) as caught:
        open_checkpoint(index)
    assert caught.value.code == "E341"
    assert "'model.safetensors.index.json'" in str(caught.value)


def written(
    path: Path, entries: dict[str, object], data: bytes, *, size: int | None = None
) -> Path:
    """A file with ``entries`` as its header, which says that the header has ``size`` bytes."""
    header = json.dumps(entries).encode()
    length = len(header) if size is None else size
    path.write_bytes(length.to_bytes(8, "little") + header + data)
    return path


NUMBERS = {
    "F32": (np.float32, [1.5, -2.0]),
    "F16": (np.float16, [1.5, -2.0]),
    "BF16": (ml_dtypes.bfloat16, [1.5, -2.0]),
    "F64": (np.float64, [1.5, -2.0]),
    "I64": (np.int64, [-3, 2**40]),
    "I8": (np.int8, [-3, 4]),
    "U8": (np.uint8, [3, 255]),
    "BOOL": (np.bool_, [True, False]),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_tensors_are_read_from_where_they_lie(tmp_path: Path, kind: str) -> None:
    dtype, numbers = NUMBERS[kind]
    first, second = np.array(numbers, dtype), np.array(numbers[::-1], dtype)
    size = first.nbytes
    entries = {
        "a": {"dtype": kind, "shape": [2], "data_offsets": [0, size]},
        "b": {"dtype": kind, "shape": [1, 2], "data_offsets": [size, 2 * size]},
        "none": {"dtype": kind, "shape": [2, 0], "data_offsets": [size, size]},
        "one": {"dtype": kind, "shape": [], "data_offsets": [0, size // 2]},
        "__metadata__": {"format": "pt"},
    }
    path = written(tmp_path / "w.safetensors", entries, first.tobytes() + second.tobytes())
    read = {name: tensor.numpy() for name, tensor in open_checkpoint(path).items()}
    wanted = {
        "a": first,
        "b": second.reshape(1, 2),
        "none": first[:0].reshape(2, 0),
        "one": first[0],
    }
    assert read.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(read[name], array)
        assert (read[name].dtype, read[name].shape) == (array.dtype, array.shape)


def entry(**changed: object) -> dict[str, object]:
    return {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changed}}


DAMAGED = {
    "ends before its header does": (entry(), 2**20),
    "'w' has the type 'F4', which ONNX lacks": (entry(dtype="F4"), None),
    "'w' lies beyond the end of the file": (entry(data_offsets=[4, 12]), None),
    "'w' lies beyond the end": (entry(data_offsets=[8, 0]), None),
    "'w' lies": (entry(shape=[-2]), None),
    "'w' has 8 bytes for 3 elements of F32": (entry(shape=[3]), None),
    "'w' has 4 bytes for 2 elements of F32": (entry(data_offsets=[4, 8]), None),
}


@pytest.mark.parametrize("why", DAMAGED)
def test_a_damaged_file_says_what_is_wrong(tmp_path: Path, why: str) -> None:
    entries, size = DAMAGED[why]
    path = written(tmp_path / "w.safetensors", entries, bytes(8), size=size)
    with pytest.raises(InvalidModel, match=why) as caught:
        open_checkpoint(path)
    assert caught.value.code == "E341"
