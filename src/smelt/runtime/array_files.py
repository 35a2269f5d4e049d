"""Read and write arrays by name: ``.npz`` and ``.npy`` of NumPy, ``.pb`` with a TensorProto.

Files may be hostile: nothing is unpickled, and sizes are checked before memory is allocated.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from smelt.errors import SmeltError, UsageError
from smelt.runtime.inputs import SIZE_LIMIT
from smelt.runtime.interface import Value

SUFFIXES = (".npz", ".npy", ".pb")


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Return the arrays in a file by name; the array of a ``.npy`` file has the empty name.

    Element types that NumPy lacks are returned as raw bytes, as NumPy writes them. Raises
    UsageError E617 for a file of another format or a damaged file.
    """
    path = Path(path)
    readers = {".npz": _read_npz, ".npy": _read_npy, ".pb": _read_pb}
    reader = readers.get(path.suffix)
    if reader is None:
        raise _unreadable(path, f"arrays are read from {', '.join(SUFFIXES)} files")
    try:
        arrays = reader(path)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except SmeltError as error:
        raise _unreadable(path, f"{error.what}: {error.why}") from error
    except (ValueError, TypeError, KeyError, zipfile.BadZipFile, NotImplementedError) as error:
        raise _unreadable(path, str(error).splitlines()[0] if str(error) else "damaged") from error
    return {name: _native(array) for name, array in arrays.items()}


def write_npz(stream: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    """Write ``arrays`` as NumPy's ``savez`` does, under any names; text arrays are stored
    as text.
    """
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            texts = array.astype(str) if array.dtype == object else array
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, texts, allow_pickle=False)


def arrays_of(name: str, value: Value) -> dict[str, np.ndarray]:
    """Return the arrays of an output, for a file: ``{name: value}``.

    The items of a sequence are called ``NAME[0]``, ``NAME[1]``, ... A map or an absent optional has
    no arrays.
    """
    if isinstance(value, list):
        items = [arrays_of(f"{name}[{index}]", item) for index, item in enumerate(value)]
        return {key: array for item in items for key, array in item.items()}
    return {name: np.asarray(value)} if isinstance(value, np.ndarray) else {}


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an ``.npz`` file."""
    arrays: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            with archive.open(info) as stream:
                arrays[info.filename.removesuffix(".npy")] = _array(stream, info.file_size)
    return arrays


def _read_npy(path: Path) -> dict[str, np.ndarray]:
    """Return the array of an ``.npy`` file under the empty name."""
    with path.open("rb") as stream:
        return {"": _array(stream, path.stat().st_size)}


def _array(stream: object, size: int) -> np.ndarray:
    """Return the array in ``stream``, of at most ``size`` bytes, after checking its header.

    Raises ValueError for a header that does not fit the data, or for Python objects.
    """
    if size > SIZE_LIMIT:
        raise ValueError(f"an array of {size:,} bytes is more than 2 GiB")
    head = io.BytesIO(stream.read(min(size, 1 << 16)))  # type: ignore[attr-defined]
    version = np.lib.format.read_magic(head)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read_header is None:
        raise ValueError(f"version {version} of the NumPy format is unknown")
    shape, fortran, dtype = read_header(head)
    if dtype.hasobject:
        raise ValueError("it contains Python objects; write text as array.astype(str)")
    count = math.prod(shape)
    data = head.read() + stream.read()  # type: ignore[attr-defined]
    if count * dtype.itemsize != len(data):
        raise ValueError(f"{dtype}{list(shape)} does not fit its {len(data):,} bytes")
    flat = np.frombuffer(data, dtype, count).copy() if dtype.itemsize else np.zeros(count, dtype)
    return flat.reshape(shape[::-1]).transpose() if fortran else flat.reshape(shape)


def _read_pb(path: Path) -> dict[str, np.ndarray]:
    """Return the tensor of a ``.pb`` file by its name; raises ValueError if there is none."""
    import onnx
    import onnx_ir as ir
    from google.protobuf.message import DecodeError

    from smelt.frontends.onnx.embedded import Embedded
    from smelt.frontends.onnx.tensors import check_tensor

    if path.stat().st_size > SIZE_LIMIT:
        raise ValueError("it is larger than 2 GiB")
    tensor = onnx.TensorProto()
    try:
        tensor.ParseFromString(path.read_bytes())
    except DecodeError as error:
        raise ValueError("it does not contain a TensorProto") from error
    if tensor.data_type == 0:
        raise ValueError("it does not contain a TensorProto")
    check_tensor(tensor, folder=None, embedded=Embedded())
    return {tensor.name: np.asarray(ir.serde.deserialize_tensor(tensor).numpy())}


def _native(array: np.ndarray) -> np.ndarray:
    """Return ``array`` in the byte order of this machine."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _unreadable(path: Path, why: str) -> UsageError:
    """Return the error E617: ``path`` has no readable arrays, for the reason ``why``."""
    return UsageError(
        "E617",
        f"cannot read arrays from {str(path)!r}",
        why=why,
        fix="write the arrays by np.savez('data.npz', x=x)",
    )
