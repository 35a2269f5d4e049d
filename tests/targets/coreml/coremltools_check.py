"""What coremltools says of a package: it loads each operation, and infers the types that we wrote."""

from __future__ import annotations

import importlib.util
import logging
import warnings
from pathlib import Path

import pytest

needs_coremltools = pytest.mark.skipif(
    importlib.util.find_spec("coremltools") is None, reason="needs the extra coreml"
)
"""Marks tests that import coremltools when they run; pytest would import it in each process."""


def loaded(path: Path):
    """The specification and the program that coremltools reads from a package."""
    logging.getLogger("coremltools").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import coremltools
        from coremltools.converters.mil.frontend.milproto.load import load
    spec = coremltools.utils.load_spec(str(path))
    weights = str(path / "Data/com.apple.CoreML/weights")
    program = load(spec, specification_version=spec.specificationVersion, file_weights_dir=weights)
    return spec, program


def problems(path: Path) -> list[str]:
    """What coremltools refuses, infers differently, or would add; empty if it agrees."""
    try:
        spec, program = loaded(path)
    except Exception as error:  # noqa: BLE001 - whatever it refuses is the finding
        return [f"{type(error).__name__}: {error}"]
    found = []
    for name, function in spec.mlProgram.functions.items():
        block = function.block_specializations[function.opset]
        found += _differences(block, program.functions[name])
    return found


def _differences(block, theirs) -> list[str]:
    """Operations whose types differ, or that lack a parameter which coremltools gives a default."""
    from coremltools.converters.mil.mil import types

    inferred = {var.name: var for op in theirs.operations for var in op.outputs or ()}
    inputs = {op.outputs[0].name: op for op in theirs.operations if op.outputs}
    found = []
    for op in block.operations:
        if op.type == "const":  # has the type of its value
            continue
        for output in op.outputs:
            var = inferred.get(output.name)
            if var is None:
                continue
            kind = output.type.tensorType
            dims = [
                d.constant.size if d.WhichOneof("dimension") == "constant" else None
                for d in kind.dimensions
            ]
            have = [d if isinstance(d, int) else None for d in map(_number, var.shape)]
            same = len(dims) == len(have) and all(
                a == b or None in (a, b) for a, b in zip(dims, have, strict=True)
            )
            if not same:
                found.append(f"{op.type}: {dims} for {have}")
            element = types.builtin_to_string(var.dtype)
            if _WORDS.get(kind.dataType) != element:
                found.append(f"{op.type}: element {kind.dataType} for {element}")
        made = inputs.get(op.outputs[0].name) if op.outputs else None
        if made is not None and op.type not in ("cond", "while_loop"):
            defaults = {key for key, value in made.inputs.items() if value is not None}
            missing = defaults - set(op.inputs) - set(op.attributes)
            if missing:
                found.append(f"{op.type} leaves out {sorted(missing)}")
    return found


def _number(dim):
    try:
        return int(dim)
    except TypeError:
        return None


_WORDS = {
    1: "bool",
    2: "string",
    10: "fp16",
    11: "fp32",
    23: "int32",
    21: "int8",
    31: "uint8",
    33: "uint32",
    25: "int4",
    35: "uint4",
}
