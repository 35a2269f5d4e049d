"""Open a checkpoint: its tensors by name, none of them read yet."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import onnx_ir as ir

from smelt.errors import InvalidModel, UsageError
from smelt.frontends.weights.npz import open_npz
from smelt.frontends.weights.orbax import is_orbax, open_orbax
from smelt.frontends.weights.safetensors import open_safetensors, shards


def open_checkpoint(path: str | PathLike[str]) -> Mapping[str, ir.TensorProtocol]:
    """Return the tensors of a checkpoint by name.

    ``path`` is a ``.safetensors`` file, the index or folder of several such files, an ``.npz``
    file, or a folder of orbax. Raises UsageError E609 if there is nothing at ``path``, and
    InvalidModel E341 for a damaged or unknown format.
    """
    place = Path(path)
    if not place.exists():
        raise UsageError(
            "E609",
            f"there is not a checkpoint {str(place)!r}",
            why="--weights is the path of a checkpoint",
            fix="check the path",
        )
    if place.is_dir() and is_orbax(place):
        return open_orbax(place)
    files = shards(place)
    if files:
        found: dict[str, ir.TensorProtocol] = {}
        for file in files:
            for name, tensor in open_safetensors(file).items():
                if name in found:
                    why = f"{name!r} stands in two of its files"
                    raise InvalidModel(
                        "E341",
                        f"cannot read {place.name!r}",
                        why=why,
                        fix="give a checkpoint of safetensors, npz or orbax",
                    )
                found[name] = tensor
        return found
    if place.is_file() and place.open("rb").read(4) == b"PK\x03\x04":
        return open_npz(place)
    steps = sorted((s.name for s in place.glob("[0-9]*") if is_orbax(s)), key=len)
    if steps:
        raise InvalidModel(
            "E341",
            f"{place.name!r} holds several checkpoints",
            why=f"a manager of orbax wrote {', '.join(steps[:5])}",
            fix=f"name one of them, such as {str(place / steps[-1])!r}",
        )
    raise InvalidModel(
        "E341",
        f"{place.name!r} is not a checkpoint",
        why="it is neither of safetensors, nor of npz, nor of orbax",
        fix="write the weights by safetensors, numpy.savez or orbax",
    )
