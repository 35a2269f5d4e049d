"""The described inputs, outputs and states of a function of an ``.mlpackage``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class ArrayElement(IntEnum):
    """The element type of a multi-array at the interface; the values are those of the format."""

    FLOAT16 = 65552
    FLOAT32 = 65568
    DOUBLE = 65600
    INT8 = 131080
    INT32 = 131104


class Color(IntEnum):
    """The colour layout of an image; the values are those of the format."""

    GRAYSCALE = 10
    RGB = 20
    BGR = 30
    GRAYSCALE_FLOAT16 = 40


@dataclass(frozen=True)
class MultiArray:
    """The type of an input or output that is an array. ``shape`` is its default, or empty.

    At most one of two fields is set: ``ranges`` has a lower and an upper bound for each dim (-1: no
    upper bound), ``enumerated`` lists all permitted shapes.
    """

    element: ArrayElement
    shape: tuple[int, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    enumerated: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Image:
    """The type of an input or output that is an image.

    ``ranges`` has the bounds of width and of height, ``enumerated`` all permitted (width, height).
    """

    width: int
    height: int
    color: Color
    ranges: tuple[tuple[int, int], ...] = ()
    enumerated: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Feature:
    """The description of an input, output or state of a function.

    ``type`` is None for a type other than arrays and images, such as a classifier's dictionary.
    """

    name: str
    type: MultiArray | Image | None
    description: str = ""
    optional: bool = False


@dataclass
class Interface:
    """The described inputs, outputs and states of one function."""

    inputs: Sequence[Feature]
    outputs: Sequence[Feature]
    states: Sequence[Feature] = ()
