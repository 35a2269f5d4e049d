"""Write small GGUF files."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

ALIGNMENT = 32
_KINDS = {int: (4, "<I"), float: (6, "<f"), bool: (7, "<?")}


def text(value: str) -> bytes:
    """A text with its length."""
    return struct.pack("<Q", len(value)) + value.encode()


def entry(value: Any) -> bytes:
    """A value of metadata with its type."""
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, list):
        items = b"".join(entry(item)[4:] for item in value)
        return struct.pack("<I", 9) + entry(value[0])[:4] + struct.pack("<Q", len(value)) + items
    kind, form = _KINDS[type(value)]
    return struct.pack("<I", kind) + struct.pack(form, value)


def gguf_bytes(
    metadata: Mapping[str, Any],
    tensors: Mapping[str, tuple[int, tuple[int, ...], bytes]],
    *,
    version: int = 3,
) -> bytes:
    """A file of ``tensors``, given as type, shape and bytes."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    head += b"".join(text(key) + entry(value) for key, value in metadata.items())
    data = b""
    for name, (kind, shape, stored) in tensors.items():
        dims = struct.pack(f"<{len(shape)}Q", *reversed(shape))
        head += text(name) + struct.pack("<I", len(shape)) + dims
        head += struct.pack("<IQ", kind, len(data))
        data += stored + bytes(-len(stored) % ALIGNMENT)
    return head + bytes(-len(head) % ALIGNMENT) + data


def floats(array: np.ndarray) -> tuple[int, tuple[int, ...], bytes]:
    """An array as F32."""
    return 0, array.shape, array.astype("<f4").tobytes()


def written(path: Path, metadata: Mapping[str, Any], tensors: Mapping[str, Any]) -> Path:
    """The file at ``path``."""
    path.write_bytes(gguf_bytes(metadata, tensors))
    return path
