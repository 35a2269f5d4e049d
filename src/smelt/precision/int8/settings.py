"""What the search for fewer bits may choose from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from smelt.precision.int8.clip import Ranges
from smelt.precision.int8.gains import Gains, gains_of
from smelt.precision.int8.methods import Method
from smelt.precision.int8.writer import Format

Activations = Literal["static", "dynamic", "auto", "float"]

QuantFormat = Literal["qdq", "qoperator"]
QUANT_FORMATS: tuple[QuantFormat, ...] = ("qdq", "qoperator")

FORMS: Mapping[Activations, frozenset[str]] = {
    "auto": frozenset({"static", "dynamic", "weights"}),
    "static": frozenset({"static", "weights"}),
    "dynamic": frozenset({"dynamic", "weights"}),
    "float": frozenset({"weights"}),
}
"""The forms of products that each choice of activations allows."""


@dataclass(frozen=True)
class Settings:
    """What the search may choose from.

    ``activations``: by measured ranges (static), by ranges of each run (dynamic), in float, or the
    best of these three for each product. ``gains``: what the search saves first, as time in ONNX
    Runtime. ``links``: operators between integer convolutions compute with integers, too. ``keep``
    names operators and results that stay in float. ``ranges``: how the range of an activation is
    chosen. ``method``: how weights are rounded; see ``methods``. ``quant_format``: whether float
    operators between DequantizeLinear and QuantizeLinear compute with codes, or integer operators.
    """

    activations: Activations = "auto"
    gains: Gains = field(default_factory=lambda: gains_of("time"))
    format: Format = field(default_factory=Format)
    links: bool = True
    keep: frozenset[str] = frozenset()
    ranges: Ranges = "minmax"
    method: Method = "auto"
    quant_format: QuantFormat = "qdq"
