"""Read files of safetensors: a JSON header, and numbers that are mapped.

The format: https://huggingface.co/docs/safetensors. The first eight bytes are the length of the
header, little endian. The header has ``{name: {"dtype", "shape", "data_offsets"}}``; offsets count
from its end. Numbers are little endian, in C order, without gaps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel, listed
from smelt.frontends.onnx.mapped import map_file

LONGEST_HEADER = 100_000_000
"""The longest header in bytes, as in the reference library."""

SHOWN = 5
"""How many names an error lists."""

DTYPES: Mapping[str, np.dtype] = {
    name: np.dtype(dtype)
    for name, dtype in {
        "F64": np.float64,
        "F32": np.float32,
        "F16": np.float16,
        "BF16": ml_dtypes.bfloat16,
        "F8_E4M3": ml_dtypes.float8_e4m3fn,
        "F8_E5M2": ml_dtypes.float8_e5m2,
        "F8_E8M0": ml_dtypes.float8_e8m0fnu,
        "BOOL": np.bool_,
        **{
            f"{sign}{bits}": f"{sign.lower()}{bits // 8}"
            for sign in "IU"
            for bits in (8, 16, 32, 64)
        },
    }.items()
}
"""Element types by their names in headers."""


def shards(path: Path) -> list[Path]:
    """Return the files of the checkpoint at ``path``: itself, or those of an index or folder.

    Empty if ``path`` is not a checkpoint of safetensors. Raises InvalidModel E341 for an index that
    is damaged or names missing files.
    """
    if path.is_dir():
        return sorted(path.glob("*.safetensors"))
    if path.name.endswith(".index.json"):
        try:
            index = json.loads(path.read_text("utf-8"))
            names = sorted(set(index["weight_map"].values()))
            if any(Path(name).name != name for name in names):
                raise ValueError("it names files outside its folder")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _damaged(path, str(error)) from error
        _check_there(path, names)
        return [path.parent / name for name in names]
    return [path] if path.suffix == ".safetensors" else []


def _check_there(index: Path, names: Sequence[str]) -> None:
    """Raise InvalidModel E341 if a file that the index names is missing."""
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing:
        raise InvalidModel(
            "E341",
            f"cannot read {index.name!r}",
            why=f"{len(missing)} of the {len(names)} files that it names are not in its folder: "
            f"{listed(missing, SHOWN)}",
            fix="put all files of the checkpoint into the folder of the index",
        )


def open_safetensors(path: Path) -> dict[str, ir.TensorProtocol]:
    """Return the tensors of one file.

    Raises InvalidModel E341 if it breaks the format, ResourceLimit E512 if it cannot be mapped.
    """
    data = map_file(path)
    try:
        header, start = _header(data)
        return {
            name: _tensor(name, entry, data, start)
            for name, entry in header.items()
            if name != "__metadata__"
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(path, str(error)) from error


def _header(data: Any) -> tuple[dict[str, Any], int]:
    """Return the header as a dict, and the offset in the file at which the elements begin."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > min(LONGEST_HEADER, len(data) - 8):
        raise ValueError("it ends before its header does")
    header = json.loads(data[8 : 8 + size].decode("utf-8"))
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    return header, 8 + size


def _tensor(name: str, entry: Mapping[str, Any], data: Any, start: int) -> ir.TensorProtocol:
    """Return the tensor that ``entry`` of the header describes; ``start`` is where elements begin.

    Raises ValueError with a sentence for an unknown type, or for offsets that do not fit.
    """
    kind = entry["dtype"]
    if kind not in DTYPES:
        raise ValueError(f"{name!r} has the type {kind!r}, which ONNX lacks")
    dtype, shape = DTYPES[kind], [int(dim) for dim in entry["shape"]]
    begin, end = (int(offset) for offset in entry["data_offsets"])
    count = math.prod(shape)
    if min(shape, default=0) < 0 or not 0 <= begin <= end <= len(data) - start:
        raise ValueError(f"{name!r} lies beyond the end of the file")
    if end - begin != count * dtype.itemsize:
        raise ValueError(f"{name!r} has {end - begin:,} bytes for {count:,} elements of {kind}")
    array = np.frombuffer(data, dtype.newbyteorder("<"), count, start + begin).reshape(shape)
    return ir.Tensor(array, dtype=ir.DataType.from_numpy(dtype), name=name)


def _damaged(path: Path, why: str) -> InvalidModel:
    """Return E341 for a file that breaks the format."""
    return InvalidModel(
        "E341", f"cannot read {path.name!r}", why=why, fix="copy or download the file again"
    )
