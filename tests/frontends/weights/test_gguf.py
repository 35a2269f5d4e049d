"""GGUF files: numbers of each type, names and shapes, and what is wrong with a damaged file.

``gguf_blocks.json`` has blocks of random bits, and the numbers that the package gguf 0.19 decodes.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from frontends.weights.gguf_files import floats, gguf_bytes, written

from smelt.errors import InvalidModel
from smelt.frontends.weights.checkpoint import open_checkpoint
from smelt.frontends.weights.gguf import BLOCKS, open_gguf
from smelt.frontends.weights.gguf_blocks import BLOCK_TYPES

VECTORS = json.loads((Path(__file__).parent / "gguf_blocks.json").read_text())
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("kind", VECTORS, ids=[each["type"] for each in VECTORS.values()])
def test_blocks_decode_to_the_bits_of_llama_cpp(kind, tmp_path):
    row, block = VECTORS[kind], BLOCK_TYPES[int(kind)]
    stored = base64.b64decode(row["blocks"])
    expected = np.frombuffer(base64.b64decode(row["numbers"]), "<f4").reshape(2, -1)
    tensors = {"w": (int(kind), expected.shape, stored)}
    tensor = open_checkpoint(written(tmp_path / "m.gguf", {}, tensors))["w"]
    assert np.array_equal(tensor.numpy(), expected)
    codes, scales, offsets = block.split(tensor.meta[BLOCKS].data.reshape(2, -1))
    assert (offsets is None) == (block.bits > 0)
    if block.bits:
        limit = 1 << (block.bits - 1)
        assert codes.dtype == np.int8
        assert codes.min() >= -limit
        assert codes.max() < limit
        spread = np.repeat(scales, codes.shape[1] // scales.shape[1], axis=1)
        assert np.array_equal(codes * spread, expected)


def test_plain_numbers_keep_their_type_and_are_mapped(tmp_path):
    tensors = {
        "f": floats(ROWS),
        "h": (1, (3, 2), ROWS.reshape(3, 2).astype("<f2").tobytes()),
        "b": (30, (6,), ROWS.reshape(6).astype(ml_dtypes.bfloat16).tobytes()),
    }
    found = open_gguf(written(tmp_path / "m.gguf", {}, tensors)).tensors
    assert [str(each.numpy().dtype) for each in found.values()] == [
        "float32",
        "float16",
        "bfloat16",
    ]
    assert np.array_equal(found["f"].numpy(), ROWS)
    assert np.array_equal(found["h"].numpy(), ROWS.reshape(3, 2))
    assert not found["f"].numpy().flags.owndata


def test_metadata(tmp_path):
    metadata = {
        "general.architecture": "llama",
        "general.alignment": 32,
        "tokens": ["a", "bc"],
        "scales": [1.5, 2.5],
        "flag": True,
    }
    found = open_gguf(written(tmp_path / "m.gguf", metadata, {"f": floats(ROWS)}))
    assert found.metadata["general.architecture"] == "llama"
    assert found.metadata["scales"].tolist() == [1.5, 2.5]
    assert found.metadata["flag"] is True
    assert found.metadata["tokens"] is None
    assert np.array_equal(found.tensors["f"].numpy(), ROWS)


WHOLE = gguf_bytes({"key": "value"}, {"f": floats(ROWS)})


@pytest.mark.parametrize(
    ("data", "why"),
    [
        *[(WHOLE[:size], "it ends before") for size in (6, 20, 30, 45, 60)],
        (WHOLE[:-20], "'f' lies beyond the end"),
        (gguf_bytes({}, {}, version=1), "its version is 1"),
        (gguf_bytes({}, {}, version=3 << 24), "big endian"),
        (gguf_bytes({"split.count": 3, "split.no": 1}, {}), "one of 3 parts"),
        (gguf_bytes({"split.count": "3"}, {}), "one of 3 parts"),
        (gguf_bytes({"general.alignment": 0}, {}), "its alignment is 0"),
        (gguf_bytes({}, {"w": (16, (256,), bytes(66))}), "'w' has the type 16; F32, F16"),
        (
            gguf_bytes({}, {"w": (2, (2, 48), bytes(54))}),
            r"'w' is \[2, 48\], but Q4_0 needs rows of n \* 32",
        ),
        (gguf_bytes({}, {"w": (2, (), bytes(18))}), r"'w' is \[\], but Q4_0"),
        (gguf_bytes({}, {"w": (0, (1,) * 5, bytes(4))}), "5 dims"),
    ],
)
def test_damaged_files(data, why, tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    with pytest.raises(InvalidModel, match=why) as caught:
        open_checkpoint(path)
    assert caught.value.code == "E341"
