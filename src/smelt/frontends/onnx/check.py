"""The checks of a model against the ONNX specification; docs/what-is-checked.md lists them.

``check_proto`` checks the rules that only the protobuf shows: the IR keeps one of two attributes
with the same name, and reads a tensor from one of two fields. ``check_model`` checks all other
rules, so it also works for models that were never a protobuf.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_ir as ir

from smelt.frontends.onnx.checks.attributes import check_attributes
from smelt.frontends.onnx.checks.functions import check_calls, check_functions, check_opsets
from smelt.frontends.onnx.checks.names import check_names
from smelt.frontends.onnx.checks.value_types import check_inputs, check_value_types
from smelt.frontends.onnx.checks.versions import check_imports, check_versions
from smelt.frontends.onnx.checks.walk import Scopes
from smelt.frontends.onnx.embedded import Embedded
from smelt.frontends.onnx.schema import check_nodes
from smelt.frontends.onnx.structure import check_depth, check_structure
from smelt.frontends.onnx.tensors import check_tensors

__all__ = ["check_model", "check_proto"]


def check_proto(
    proto: onnx.ModelProto, scopes: Scopes, folder: Path | None, embedded: Embedded
) -> None:
    """Raise InvalidModel or ResourceLimit for the first rule that ``proto`` breaks.

    ``scopes`` are the scopes of ``proto``. Weights in files are looked up in ``folder``. Large
    weights in the model are replaced by references to ``embedded``.
    """
    check_imports(proto)
    check_names(scopes)
    check_functions(proto)
    check_attributes(scopes)
    check_value_types(scopes)
    check_tensors(proto, scopes, folder, embedded)


def check_model(model: ir.Model) -> None:
    """Raise InvalidModel for the first rule that ``model`` breaks.

    Nodes in a wrong order are sorted in place.
    """
    check_versions(model)
    check_depth(model)
    check_inputs(model)
    check_structure(model)
    check_calls(model)
    check_nodes(model)
    check_opsets(model)
