"""A package with every kind of type, constant and interface: its bytes, and what is read back.

``package.txt`` shows the bytes field by field, as numbers of the format. Running this file writes
it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest

from smelt.errors import Unsupported
from smelt.mlpackage.interface import ArrayElement, Color, Feature, Image, Interface, MultiArray
from smelt.mlpackage.program import (
    Block,
    Constant,
    DictionaryType,
    Element,
    Function,
    ListType,
    Named,
    Operation,
    Package,
    Program,
    StateType,
    TensorType,
    TupleType,
)
from smelt.mlpackage.read import read_package
from smelt.mlpackage.wire import encode, varint
from smelt.mlpackage.write import MODEL_FILE, PackageFiles

SHOWN = Path(__file__).with_name("package.txt")
TEXT = TensorType(Element.STRING)
NUMBER = TensorType(Element.INT32)


def numbers(element: Element, *dims: int) -> Constant:
    """Return a constant of ``element`` with other bits in each element."""
    count = int(np.prod(dims))
    if element == Element.STRING:
        value = np.array([f"t{place}" for place in range(count)])
    elif element.numpy.kind == "f":
        value = np.linspace(-1.5, 2.5, count)
    else:
        value = np.arange(count) % (1 << min(element.bits, 7)) - 8 * (element == Element.INT4)
    return Constant(TensorType(element, dims), value.astype(element.numpy).reshape(dims))


def constants() -> dict[str, Constant]:
    """Return a constant of each type, in place and in the weight file."""
    made = {f"{each.name.lower()}": numbers(each, 2, 3) for each in Element}
    for each in Element:
        if each not in (
            Element.STRING,
            Element.BOOL,
            Element.FLOAT64,
            Element.INT64,
            Element.UINT64,
        ):
            held = numbers(each, 3, 5)
            made[f"{each.name.lower()} in the file"] = Constant(held.type, held.value, in_file=True)
    one, two = (Constant(NUMBER, np.array(value, np.int32)) for value in (1, -2))
    name = Constant(TEXT, "a")
    return made | {
        "text": name,
        "negative": Constant(TensorType(Element.INT64), np.array(-(1 << 40))),
        "empty": Constant(TensorType(Element.FLOAT32, (0, 2)), np.zeros((0, 2), np.float32)),
        "list": Constant(ListType(NUMBER, 2), [one, two]),
        "tuple": Constant(TupleType((NUMBER, TEXT)), [one, name]),
        "dictionary": Constant(DictionaryType(TEXT, NUMBER), [(name, two)]),
    }  # fmt: skip


TYPES = [
    TensorType(Element.FLOAT16, None),
    TensorType(Element.FLOAT32, (None, 300, 0)),
    TensorType(Element.FLOAT32, ((1 << 31) - 1,)),
    ListType(TensorType(Element.BOOL, (2,))),
    ListType(NUMBER, 0),
    TupleType(()),
    DictionaryType(TEXT, ListType(NUMBER, 3)),
    StateType(TensorType(Element.FLOAT16, (4,))),
]
FEATURES = [
    Feature("plain", MultiArray(ArrayElement.FLOAT16)),
    Feature("shape", MultiArray(ArrayElement.DOUBLE, (1, 300)), "says what"),
    Feature("ranges", MultiArray(ArrayElement.INT32, (1, 4), ((1, -1), (4, 5))), optional=True),
    Feature("listed", MultiArray(ArrayElement.INT8, (2,), (), ((2,), (3, 4)))),
    Feature("image", Image(20, 30, Color.BGR)),
    Feature("wide", Image(20, 30, Color.RGB, ((1, 40), (2, -1)))),
    Feature("sizes", Image(20, 30, Color.GRAYSCALE_FLOAT16, (), ((20, 30), (7, 8)))),
]


def package() -> Package:
    """Return a package of two functions with all of it."""
    held = constants()
    inner = Block([Operation("noop")], ["y"], [Named("i", NUMBER)], {"why": held["text"]})
    mixed = ["x", held["list"], "y"]
    outputs = [Named("y", NUMBER), Named("z", TEXT)]
    branch = Operation("cond", {"values": mixed, "pred": ["c"]}, outputs, [inner, Block()])
    consts = [
        Operation("const", {}, [Named(name, each.type)], attributes={"val": each})
        for name, each in held.items()
    ]
    bodies = {"CoreML7": Block([*consts, branch], ["y", "z"]), "CoreML5": Block()}
    inputs = [Named(f"t{place}", each) for place, each in enumerate(TYPES)]
    program = Program(
        {
            "main": Function(inputs, "CoreML7", bodies, {"speed": held["negative"]}),
            "other": Function([], "CoreML5", {"CoreML5": Block()}),
        },
        300,
        {"build": held["text"]},
    )
    state = Feature("kept", MultiArray(ArrayElement.FLOAT16, (4,)))
    interfaces = {
        "main": Interface(FEATURES, FEATURES[1:2], [state]),
        "other": Interface([], FEATURES[4:5]),
    }
    metadata = {"author": "a", "license": "b", "shortDescription": "c", "versionString": "d"}
    return Package(9, program, interfaces, "other", metadata, {"tool": "x", "a": "y"})


def single() -> Package:
    """Return a package whose only function is described as the model."""
    body = Function([Named("x", NUMBER)], "CoreML7", {"CoreML7": Block([], ["x"])})
    interface = Interface(
        FEATURES[:1], FEATURES[3:5], [Feature("s", MultiArray(ArrayElement.INT8))]
    )
    return Package(6, Program({"main": body}), {"main": interface})


def plain(value: object) -> object:
    """Return lists, dicts and texts that are equal where two packages are."""
    if is_dataclass(value):
        return [type(value).__name__, *(plain(getattr(value, f.name)) for f in fields(value))]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return [value.dtype.name if value.dtype.kind != "U" else "str", value.shape, value.tolist()]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def raw(data: bytes, depth: int = 0) -> Iterator[str]:
    """Yield the fields of a message by their numbers, without a table of names."""
    at = 0

    def number() -> int:
        nonlocal at
        found = shift = 0
        while data[at] > 127:
            found |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
        found |= data[at] << shift
        at += 1
        return found

    while at < len(data):
        tag = number()
        if tag & 7 == 0:
            yield f"{'  ' * depth}{tag >> 3}: {number()}"
            continue
        size = number()
        part, at = data[at : at + size], at + size
        assert (tag & 7, len(part)) == (2, size)
        try:
            inner = list(raw(part, depth + 1))
        except (AssertionError, IndexError):
            inner = []
        is_text = part.isascii() and part.decode().isprintable()
        if is_text or not inner:
            yield f"{'  ' * depth}{tag >> 3}: {part.decode() if is_text else part.hex()!r}"
        else:
            short = f"{'  ' * depth}{tag >> 3}: {{{', '.join(each.strip() for each in inner)}}}"
            yield from [short] if len(short) < 100 else [f"{'  ' * depth}{tag >> 3}:", *inner]


def shown(of: Package) -> Iterator[str]:
    """Yield the files of a package: the model by its fields, others by records of 64 bytes."""
    for name, data in PackageFiles(of).files().items():
        yield name
        if name == MODEL_FILE:
            yield from raw(data, 1)
        elif name.endswith(".json"):
            yield from data.decode().splitlines()
        else:
            yield from (
                data[at : at + 64].rstrip(b"\0").hex(" ", 4) for at in range(0, len(data), 64)
            )


@pytest.mark.parametrize("make", [package, single])
def test_the_bytes_are_those_that_the_table_shows(make) -> None:
    text = "\n".join(shown(make()))
    assert f"{make.__name__}\n{text}\n" in SHOWN.read_text(encoding="utf-8")


@pytest.mark.parametrize("make", [package, single])
def test_what_is_written_is_read(make, tmp_path: Path) -> None:
    files = PackageFiles(make())
    for name, data in files.files().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    assert files.weight_bytes == sum(len(piece) for piece in files.weights()) * files.has_weights
    assert plain(read_package(tmp_path)) == plain(make())


def test_blocks_come_outer_first() -> None:
    found = list(package().blocks())
    assert len(found) == 5
    outer = next(place for place, each in enumerate(found) if len(each.operations) > 9)
    inner = next(place for place, each in enumerate(found) if each.inputs)
    assert outer < inner


OTHER_MODELS = (
    "200 pipelineClassifier, 201 pipelineRegressor, 202 pipeline, 300 glmRegressor, "
    "301 supportVectorRegressor, 302 treeEnsembleRegressor, 303 neuralNetworkRegressor, "
    "304 bayesianProbitRegressor, 400 glmClassifier, 401 supportVectorClassifier, "
    "402 treeEnsembleClassifier, 403 neuralNetworkClassifier, 404 kNearestNeighborsClassifier, "
    "500 neuralNetwork, 555 customModel, 556 linkedModel, 560 classConfidenceThresholding, "
    "600 oneHotEncoder, 601 imputer, 602 featureVectorizer, 603 dictVectorizer, 604 scaler, "
    "606 categoricalMapping, 607 normalizer, 609 arrayFeatureExtractor, "
    "610 nonMaximumSuppression, 900 identity, 2000 textClassifier, 2001 wordTagger, "
    "2002 visionFeaturePrint, 2003 soundAnalysisPreprocessing, 2004 gazetteer, "
    "2005 wordEmbedding, 2006 audioFeaturePrint, 3000 serializedModel"
)


def test_other_models_are_told_by_their_field() -> None:
    for each in OTHER_MODELS.split(", "):
        number, name = each.split()
        with pytest.raises(Unsupported, match=f"of type {name}\n"):
            read_package(varint(int(number) << 3 | 2) + b"\0")


def test_an_encoded_message_stands_as_its_bytes() -> None:
    inner = {"lowerBound": 1, "upperBound": 300}
    assert encode("ShapeRange", {"sizeRanges": [encode("SizeRange", inner)]}) == encode(
        "ShapeRange", {"sizeRanges": [inner]}
    )


if __name__ == "__main__":
    SHOWN.write_text(
        "".join(
            f"{make.__name__}\n" + "\n".join(shown(make())) + "\n" for make in (package, single)
        ),
        encoding="utf-8",
    )
