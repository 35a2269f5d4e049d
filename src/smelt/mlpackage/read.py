"""Read the files of Core ML, an ``.mlpackage`` or an ``.mlmodel``, as a Package.

``Fields`` is a decoded protobuf message, a dict of fields. ``files`` has the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from smelt.errors import InvalidModel, Unsupported
from smelt.mlpackage.folder import WeightFiles, model_file, read_file
from smelt.mlpackage.interface import ArrayElement, Color, Feature, Image, Interface, MultiArray
from smelt.mlpackage.program import Argument, Block, Function, Named, Operation, Package, Program
from smelt.mlpackage.schema import OTHER_MODELS
from smelt.mlpackage.values import Fields, constant_of, damaged, type_of
from smelt.mlpackage.wire import MalformedMessage, decode

MAIN = "main"


def read_package(source: Path | bytes) -> Package:
    """Return the package in a folder, in a model file, or in the bytes of a model file.

    Weights are memory-mapped, not copied. Raises InvalidModel E301 for bytes that are no message,
    E302 for a message that describes no program, E312 for absurd nesting, E313 for files outside of
    the package, E314 for missing weights; ResourceLimit E501 and E503 for absurd sizes; UsageError
    E609 for a file that cannot be read; Unsupported E122 for a model that is no ML Program.
    """
    if isinstance(source, bytes):
        data, folder = source, None
    else:
        path = model_file(source) if source.is_dir() else source
        data, folder = read_file(path), path.parent
    try:
        return _package(decode("Model", data), WeightFiles(folder))
    except MalformedMessage as error:
        raise InvalidModel(
            "E301",
            "the bytes are not a Core ML model, or are damaged",
            why=str(error),
            fix="check that the file is whole",
        ) from error
    except RecursionError as error:
        raise InvalidModel(
            "E312",
            "the program of the Core ML model is nested too deep",
            why="blocks or types contain each other hundreds of times",
            fix="the file is damaged; copy it again",
        ) from error


def _package(fields: Fields, files: WeightFiles) -> Package:
    """Return the package in a ``Model`` message."""
    if "mlProgram" not in fields:
        raise _other_model(fields)
    description = fields.get("description", {})
    functions = {
        each.get("name", ""): _interface(each, "input", "output", "state")
        for each in description.get("functions", ())
    }
    metadata = description.get("metadata", {})
    return Package(
        specification_version=fields.get("specificationVersion", 0),
        program=_program(fields["mlProgram"], files),
        interfaces=functions or {MAIN: _interface(description, "input", "output", "state")},
        default_function=description.get("defaultFunctionName") or MAIN,
        metadata={name: text for name, text in metadata.items() if isinstance(text, str)},
        user_defined=metadata.get("userDefined", {}),
    )


def _other_model(fields: Fields) -> Exception:
    """Return the error for a model that is no ML Program."""
    known = [name for name in OTHER_MODELS.values() if name in fields]
    if not known:
        return damaged("it holds neither an ML Program nor another known type of model")
    return Unsupported(
        "E122",
        f"a Core ML model of type {known[0]}",
        why="smelt reads ML Programs, the type mlProgram that exists since iOS 15",
        fix="convert the source model again with convert_to='mlprogram'",
    )


def _program(fields: Fields, files: WeightFiles) -> Program:
    """Return the program in a ``Program`` message; raises E302 for a function without a body."""
    functions = {
        name: Function(
            inputs=[_named(each) for each in item.get("inputs", ())],
            opset=item.get("opset", ""),
            blocks={
                opset: _block(block, files)
                for opset, block in item.get("block_specializations", {}).items()
            },
            attributes=_constants(item, files),
        )
        for name, item in fields.get("functions", {}).items()
    }
    for name, function in functions.items():
        if function.opset not in function.blocks:
            raise damaged(f"the function {name!r} has no body for its opset {function.opset!r}")
    return Program(functions, fields.get("version", 0), _constants(fields, files))


def _block(fields: Fields, files: WeightFiles) -> Block:
    """Return a block with its operations."""
    return Block(
        operations=[_operation(each, files) for each in fields.get("operations", ())],
        outputs=fields.get("outputs", ()),
        inputs=[_named(each) for each in fields.get("inputs", ())],
        attributes=_constants(fields, files),
    )


def _operation(fields: Fields, files: WeightFiles) -> Operation:
    """Return an operation."""
    inputs = {
        name: [_argument(each, files) for each in item.get("arguments", ())]
        for name, item in fields.get("inputs", {}).items()
    }
    return Operation(
        type=fields.get("type", ""),
        inputs=inputs,
        outputs=[_named(each) for each in fields.get("outputs", ())],
        blocks=[_block(each, files) for each in fields.get("blocks", ())],
        attributes=_constants(fields, files),
    )


def _argument(fields: Fields, files: WeightFiles) -> Argument:
    """Return an argument: the name of a value, or a constant."""
    if "value" in fields:
        return constant_of(fields["value"], files)
    name: str = fields.get("name", "")
    return name


def _constants(fields: Fields, files: WeightFiles) -> Mapping[str, Any]:
    """Return the attributes of a message."""
    return {name: constant_of(item, files) for name, item in fields.get("attributes", {}).items()}


def _named(fields: Fields) -> Named:
    """Return a name with its type."""
    return Named(fields.get("name", ""), type_of(fields.get("type", {})))


def _interface(fields: Fields, *lists: str) -> Interface:
    """Return an interface; ``lists`` names the fields of inputs, outputs and states."""
    return Interface(*([_feature(each) for each in fields.get(name, ())] for name in lists))


def _feature(fields: Fields) -> Feature:
    """Return the description of an input, output or state; raises E302 for unknown numbers."""
    kind = fields.get("type", {})
    array = kind.get("multiArrayType", kind.get("stateType", {}).get("arrayType"))
    image = kind.get("imageType")
    described: MultiArray | Image | None = None
    try:
        if array is not None:
            described = _multi_array(array)
        elif image is not None:
            described = _image(image)
    except ValueError as error:
        raise damaged(f"the input or output {fields.get('name')!r}: {error}") from error
    return Feature(
        fields.get("name", ""),
        described,
        fields.get("shortDescription", ""),
        kind.get("isOptional", False),
    )


def _numbers(fields: Fields, name: str = "shape") -> tuple[int, ...]:
    """Return the field ``name``, a packed array of integers, as a tuple."""
    return tuple(np.asarray(fields.get(name, ()), np.int64).tolist())


def _ranges(items: list[Fields]) -> tuple[tuple[int, int], ...]:
    """Return each range of sizes as (lower, upper)."""
    return tuple((item.get("lowerBound", 0), item.get("upperBound", 0)) for item in items)


def _multi_array(fields: Fields) -> MultiArray:
    """Return a multi-array; raises ValueError for an unknown element type."""
    return MultiArray(
        ArrayElement(fields.get("dataType", 0)),
        _numbers(fields),
        _ranges(fields.get("shapeRange", {}).get("sizeRanges", ())),
        tuple(map(_numbers, fields.get("enumeratedShapes", {}).get("shapes", ()))),
    )


def _image(fields: Fields) -> Image:
    """Return an image; raises ValueError for an unknown colour layout."""
    sizes = fields.get("imageSizeRange", {})
    both = [sizes[name] for name in ("widthRange", "heightRange") if name in sizes]
    enumerated = fields.get("enumeratedSizes", {}).get("sizes", ())
    return Image(
        fields.get("width", 0),
        fields.get("height", 0),
        Color(fields.get("colorSpace", 0)),
        _ranges(both),
        tuple((each.get("width", 0), each.get("height", 0)) for each in enumerated),
    )
