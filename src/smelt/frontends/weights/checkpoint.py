"""Open a checkpoint: its tensors by name, none of them read yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

import onnx_ir as ir

from smelt.errors import InvalidModel, UsageError
from smelt.frontends.weights.gguf import MAGIC, open_gguf
from smelt.frontends.weights.npz import open_npz
from smelt.frontends.weights.orbax import is_orbax, open_orbax
from smelt.frontends.weights.safetensors import open_safetensors, shards


def open_checkpoint(path: str | PathLike[str]) -> Mapping[str, ir.TensorProtocol]:
    """Return the tensors of a checkpoint by name.

    ``path`` is a ``.safetensors`` file, the index or folder of several such files, a ``.gguf`` or
    ``.npz`` file, or a folder of orbax. Raises UsageError E609 if there is nothing at ``path``, and
    InvalidModel E341 for a damaged or unknown format.
    """
    location = Path(path)
    if not location.exists():
        raise UsageError(
            "E609",
            f"there is no checkpoint {str(location)!r}",
            why="no file or folder has this path",
            fix="check the path",
        )
    if location.is_dir() and is_orbax(location):
        return open_orbax(location)
    files = shards(location)
    if files:
        return _open_shards(location, files)
    if location.is_file():
        with location.open("rb") as file:
            start = file.read(4)
        if start == MAGIC:
            return open_gguf(location).tensors
        if start == b"PK\x03\x04":
            return open_npz(location)
    raise _unknown_format(location)


def _open_shards(location: Path, files: Sequence[Path]) -> dict[str, ir.TensorProtocol]:
    """Return the tensors of all safetensors ``files`` of one checkpoint by name.

    Raises InvalidModel E341 if two files contain a tensor of the same name.
    """
    tensors: dict[str, ir.TensorProtocol] = {}
    for file in files:
        for name, tensor in open_safetensors(file).items():
            if name in tensors:
                raise InvalidModel(
                    "E341",
                    f"cannot read {location.name!r}",
                    why=f"two of its files contain {name!r}",
                    fix="give a checkpoint of safetensors, npz or orbax",
                )
            tensors[name] = tensor
    return tensors


def _unknown_format(location: Path) -> InvalidModel:
    """Return E341 for a file or folder of no known format, or with several orbax checkpoints."""
    steps = sorted((s.name for s in location.glob("[0-9]*") if is_orbax(s)), key=len)
    if steps:
        return InvalidModel(
            "E341",
            f"{location.name!r} contains several checkpoints",
            why=f"a checkpoint manager of orbax wrote the steps {', '.join(steps[:5])}",
            fix=f"name one step, such as {str(location / steps[-1])!r}",
        )
    return InvalidModel(
        "E341",
        f"{location.name!r} is not a checkpoint",
        why="its format is neither safetensors, nor GGUF, nor npz, nor orbax",
        fix="write the weights by safetensors, numpy.savez or orbax",
    )
