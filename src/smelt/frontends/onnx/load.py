"""Load a model: read, check, convert to the IR, normalise."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_ir as ir

from smelt.errors import InvalidModel, SmeltError
from smelt.frontends.coreml.detect import is_core_ml
from smelt.frontends.onnx.check import check_model, check_proto
from smelt.frontends.onnx.checks.sparse import make_dense
from smelt.frontends.onnx.checks.value_types import forget_impossible_sizes
from smelt.frontends.onnx.checks.walk import scopes
from smelt.frontends.onnx.imports import name_imports
from smelt.frontends.onnx.inline import inline_functions
from smelt.frontends.onnx.map_types import note_map_types, without_map_types
from smelt.frontends.onnx.mapped import map_weights
from smelt.frontends.onnx.read import Read, Source, read_proto
from smelt.ir import scope
from smelt.ir.cloning import clone_model
from smelt.ir.defaults import set_aside_defaults
from smelt.ir.names import name_nodes
from smelt.ir.onnx_ir_log import silent_onnx_ir
from smelt.ir.opsets.lower_opset import lower_opset
from smelt.ir.opsets.raise_opset import LOWEST_GOAL, raise_opset, replace_withdrawn
from smelt.ir.symbolic_dims.dim_texts import keep_opaque
from smelt.ir.tensors.protobuf_tensors import leave_messages_alone
from smelt.operators import restore_operators
from smelt.operators.onnxruntime.runtime_defects import note_source
from smelt.spans import span


def load(
    source: Source,
    *,
    opset: int | None = None,
    inline: bool = True,
    as_is: bool = False,
    keep_opset: bool = False,
) -> ir.Model:
    """Return an ONNX model as IR, checked and normalised.

    ``source`` is a path, the bytes of a file, a ModelProto, or an IR model, which is copied.
    Weights in external files and large weights inside the model stay in their files, which are
    mapped and read when needed.

    - ``opset``: convert the model to that opset, or raise Unsupported E230 (raising it) or E231
      (lowering it). By default, models below 13 are converted to 13 where possible, and those with
      a LayerNormalization to 17, its first opset.
    - ``inline=False``: keep the functions of the model.
    - ``as_is``: keep opset and functions, so that a comparison runs the source and not smelt's
      conversion of it.
    - ``keep_opset``: leave the opset to the caller, except for models whose functions have another
      opset, because inlining needs a single one.

    Raises InvalidModel (E3xx) for models that break the specification or reach outside their
    folder, ResourceLimit (E5xx) for absurd sizes, and UsageError E609 if there is no such file.
    """
    with span("load", **_name_attribute(source)) as load_span:
        model = _read_checked(source)
        load_span.note(nodes=sum(len(graph) for graph in scope.graphs(model)))
        if as_is:
            return model
        if not keep_opset or (_has_other_opsets(model) and not _is_above(model, opset)):
            bring_to_opset(model, opset)
        replace_withdrawn(model, opset)
        restore_operators(model)
        if inline and model.functions:
            with span("inline"):
                inline_functions(model)
    return model


def adopt(source: ir.Model, opset: int | None = None) -> ir.Model:
    """Return a checked copy of an IR model, with operators that ONNX describes.

    ``opset`` is the opset that the model will be converted to, if that is fixed.
    """
    model = clone(source)
    name_imports(model)
    check_model(model)
    set_aside_defaults(model)
    replace_withdrawn(model, opset)
    return model


def _has_other_opsets(model: ir.Model) -> bool:
    """True if a function has another opset than the model."""
    model_opset = model.opset_imports.get("")
    return any(
        f.opset_imports.get("", model_opset) != model_opset for f in model.functions.values()
    )


def _is_above(model: ir.Model, opset: int | None) -> bool:
    """True if the model or one of its functions has a later opset than ``opset``."""
    tables = (model.opset_imports, *(f.opset_imports for f in model.functions.values()))
    return opset is not None and any(table.get("", opset) > opset for table in tables)


def _name_attribute(source: Source) -> dict[str, str]:
    """Return the file name of ``source`` as an attribute of the span."""
    return {"file": str(source)} if isinstance(source, str | Path) else {}


def _read_checked(source: Source) -> ir.Model:
    """Return the model unconverted, checked against the specification."""
    model = clone(source) if isinstance(source, ir.Model) else _read(source)
    name_imports(model)
    with span("check"):
        check_model(model)
    forget_impossible_sizes(model)
    keep_opaque(model)
    name_nodes(model)
    set_aside_defaults(model)
    note_source(model)
    return model


def clone(model: ir.Model) -> ir.Model:
    """Return a copy of ``model``.

    Raises InvalidModel E302 if a function reads a value outside of itself.
    """
    try:
        copy = clone_model(model)
    except (ValueError, RuntimeError) as error:
        raise InvalidModel(
            "E302",
            "the model cannot be copied",
            why=_innermost_message(error),
            fix="save the model and load the file",
        ) from error
    leave_messages_alone(copy)
    return copy


def _read(source: onnx.ModelProto | bytes | str | Path) -> ir.Model:
    """Return the model of a protobuf, of bytes or of a file; of Core ML, too."""
    with span("read"):
        if is_core_ml(source):
            from smelt.frontends.coreml.load import read_core_ml

            return read_core_ml(source)
        return _from_proto(read_proto(source))


def _from_proto(read: Read) -> ir.Model:
    """Return the checked protobuf as IR, with dense and mapped weights."""
    proto_scopes = scopes(read.proto)
    check_proto(read.proto, proto_scopes, read.folder, read.embedded)
    proto = make_dense(read.proto, proto_scopes)
    proto, map_types = without_map_types(
        proto, proto_scopes if proto is read.proto else scopes(proto)
    )
    try:
        with silent_onnx_ir():
            model = ir.from_proto(proto)
    except SmeltError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError, ir.serde.SerdeError) as error:
        raise InvalidModel(
            "E302",
            "the model cannot be read",
            why=_innermost_message(error),
            fix="check it by onnx.checker.check_model, and export it again",
        ) from error
    leave_messages_alone(model)
    note_map_types(model, map_types)
    map_weights(model, read.folder, read.embedded)
    return model


def _innermost_message(error: BaseException) -> str:
    """Return the message of the innermost cause, one line of up to 200 characters.

    onnx_ir wraps an error at each level.
    """
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__


def bring_to_opset(model: ir.Model, opset: int | None) -> None:
    """Convert ``model`` to ``opset``, or raise Unsupported E230 or E231.

    Without ``opset``, to 13 where that is possible.
    """
    if opset is not None:
        if _is_above(model, opset):
            lower_opset(model, opset)
        raise_opset(model, opset)
    elif model.opset_imports.get("", LOWEST_GOAL) < LOWEST_GOAL:
        try:
            raise_opset(model, LOWEST_GOAL)
        except SmeltError as error:
            if error.code != "E230":
                raise
