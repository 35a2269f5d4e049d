"""Write the interface of a package, its inputs, outputs and states, as protobuf messages.

A message is a dict of fields, which ``wire.encode`` turns into bytes.
"""

from __future__ import annotations

from typing import Any

from smelt.mlpackage.interface import Feature, Image, Interface, MultiArray
from smelt.mlpackage.program import Package


def description(package: Package) -> dict[str, Any]:
    """Return the message ``ModelDescription``: interfaces of all functions, and metadata.

    The interface of an only function called ``main`` is in the message itself.
    """
    fields: dict[str, Any] = {}
    if list(package.interfaces) == ["main"]:
        fields |= _interface(package.interfaces["main"])
    else:
        fields["functions"] = [
            {"name": name, **_interface(each)} for name, each in package.interfaces.items()
        ]
        fields["defaultFunctionName"] = package.default_function
    metadata: dict[str, Any] = dict(package.metadata)
    if package.user_defined:
        metadata["userDefined"] = package.user_defined
    if metadata:
        fields["metadata"] = metadata
    return fields


def _interface(interface: Interface) -> dict[str, Any]:
    """Return the fields of one function's inputs, outputs and states; empty lists are left out."""
    fields = {
        "input": [_feature(each) for each in interface.inputs],
        "output": [_feature(each) for each in interface.outputs],
        "state": [_feature(each, state=True) for each in interface.states],
    }
    return {name: features for name, features in fields.items() if features}


def _feature(feature: Feature, *, state: bool = False) -> dict[str, Any]:
    """Return the message of one input or output, or with ``state`` of a state."""
    kind = feature.type
    assert kind is not None
    if isinstance(kind, Image):
        type_fields: dict[str, Any] = {"imageType": _image(kind)}
    else:
        array = _array(kind)
        type_fields = {"stateType": {"arrayType": array}} if state else {"multiArrayType": array}
    if feature.optional:
        type_fields["isOptional"] = True
    fields = {"name": feature.name, "type": type_fields}
    if feature.description:
        fields["shortDescription"] = feature.description
    return fields


def _array(array: MultiArray) -> dict[str, Any]:
    """Return the message of a multi-array type."""
    fields: dict[str, Any] = {"dataType": int(array.element)}
    if array.shape:
        fields["shape"] = array.shape
    if array.ranges:
        fields["shapeRange"] = {"sizeRanges": [_range(each) for each in array.ranges]}
    if array.enumerated:
        fields["enumeratedShapes"] = {"shapes": [{"shape": each} for each in array.enumerated]}
    return fields


def _image(image: Image) -> dict[str, Any]:
    """Return the message of an image type."""
    fields: dict[str, Any] = {
        "width": image.width,
        "height": image.height,
        "colorSpace": int(image.color),
    }
    if image.ranges:
        width, height = map(_range, image.ranges)
        fields["imageSizeRange"] = {"widthRange": width, "heightRange": height}
    if image.enumerated:
        sizes = [{"width": width, "height": height} for width, height in image.enumerated]
        fields["enumeratedSizes"] = {"sizes": sizes}
    return fields


def _range(bounds: tuple[int, int]) -> dict[str, int]:
    """Return the message of a range of sizes."""
    return {"lowerBound": bounds[0], "upperBound": bounds[1]}
