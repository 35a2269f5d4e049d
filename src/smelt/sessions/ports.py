"""What a session tells about its model, as ONNX Runtime spells it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx_ir as ir

    from smelt.runtime.interface import Port

NO_VERSION = (1 << 63) - 1
"""The version of a model without one, as in ONNX Runtime."""

Dim = int | str | None
"""A size, the name of a symbolic dim, or None for a dim without a name."""


@dataclass(frozen=True)
class NodeArg:
    """An input or output: its name, its type such as ``tensor(float)``, and the shape of a
    tensor.
    """

    name: str
    type: str
    shape: list[Dim]

    @staticmethod
    def of(port: Port) -> NodeArg:
        """Return ``port`` in the spelling of ONNX Runtime."""
        shape = [_dim(dim, port) for dim in port.shape or ()] if port.kind != "sequence" else []
        return NodeArg(port.name, type_of(port), shape)

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


@dataclass(frozen=True)
class ModelMetadata:
    """Names, versions and texts of a model."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = NO_VERSION
    custom_metadata_map: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of(model: ir.Model) -> ModelMetadata:
        """Return the metadata of ``model``."""
        return ModelMetadata(
            producer_name=model.producer_name or "",
            graph_name=model.graph.name or "",
            domain=model.domain or "",
            description=model.doc_string or "",
            graph_description=model.graph.doc_string or "",
            version=NO_VERSION if model.model_version is None else model.model_version,
            custom_metadata_map=dict(model.metadata_props),
        )


@dataclass(frozen=True)
class SessionPort:
    """An input or output; an input is ``required`` unless it has a default or is optional."""

    argument: NodeArg
    has_default: bool = False
    required: bool = True

    @property
    def name(self) -> str:
        """The name of the input or output."""
        return self.argument.name

    @staticmethod
    def of(port: Port) -> SessionPort:
        """Return ``port`` with its type and dims as ONNX Runtime writes them."""
        has_default = port.default is not None
        return SessionPort(
            NodeArg.of(port), has_default, not has_default and port.kind != "optional"
        )


@dataclass(frozen=True)
class Description:
    """The inputs, outputs and metadata of a model."""

    inputs: list[SessionPort]
    outputs: list[SessionPort]
    metadata: ModelMetadata

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON data."""
        return asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Description:
        """Return the description that ``to_json`` wrote."""
        inputs, outputs = (
            [SessionPort(**{**port, "argument": NodeArg(**port["argument"])}) for port in side]
            for side in (document["inputs"], document["outputs"])
        )
        return Description(inputs, outputs, ModelMetadata(**document["metadata"]))


def type_of(port: Port) -> str:
    """Return the type of ``port``: ``tensor(float)``, ``seq(tensor(float))``,
    ``seq(map(int64,tensor(float)))``.
    """
    if port.is_opaque:
        with_tensors = re.sub(r",(\w+)\)", r",tensor(\1))", port.kind)
        return with_tensors.replace("sequence(", "seq(")
    tensor = f"tensor({port.dtype.name.lower() if port.dtype is not None else 'undefined'})"
    short = {"tensor": "", "sequence": "seq", "optional": "optional", "sparse": "sparse"}[port.kind]
    if short == "sparse":
        return f"sparse_{tensor}"
    return f"{short}({tensor})" if short else tensor


def _dim(dim: int | ir.SymbolicDim, port: Port) -> Dim:
    """Return a dim as a number or a name; None if the model gives it no name."""
    if isinstance(dim, int):
        return dim
    return None if dim.value is None or dim.value in port.unnamed else str(dim.value)
