"""Lowers the ONNX opset of a model, one version at a time.

At each version, a node whose operator changed there gets its earlier form: by a row of
``opset_lowerings.py``, as it stands if the earlier schema accepts it, with operands cast to a wider
type, or by the function body that ONNX defines. Nodes without any of these are refused together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import onnx
import onnx_ir as ir

from smelt.errors import ErrorList, Unsupported
from smelt.ir import opset, scope
from smelt.ir.cloning import clone_model
from smelt.ir.constants import Constants
from smelt.ir.inlining import inline
from smelt.ir.opsets.operator_body import body_of, body_opsets
from smelt.ir.opsets.opset_lowerings import LOWERINGS
from smelt.ir.opsets.raise_opset import LOWEST_GOAL
from smelt.ir.opsets.versions import ir_version_of
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.shapes.inference import ShapeInference

RULE = "lower_opset"

WIDER: Mapping[ir.DataType, ir.DataType] = {
    **dict.fromkeys((ir.DataType.BFLOAT16, ir.DataType.FLOAT16), ir.DataType.FLOAT),
    **dict.fromkeys(
        (ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT16, ir.DataType.UINT16),
        ir.DataType.INT32,
    ),
    ir.DataType.BOOL: ir.DataType.UINT8,
}
"""Element type to a wider one. An operator that runs in the wider type, with its result cast back,
gives the same result: the cast back wraps integers as the narrow operator does."""

OF_INTEGERS = frozenset({"Add", "Sub", "Mul", "Div"})
OF_BOOLS = frozenset({"ReduceMax", "ReduceMin"})
"""Operators that give the same result in a wider type for integers, and for booleans."""


def lower_opset(model: ir.Model, to: int) -> None:
    """Lower ``model`` and its functions to ONNX opset ``to``, in place.

    The IR version becomes that of the opset. Raises ErrorList of Unsupported E231, with the model
    unchanged, for all nodes that have no form at ``to``, or if ``to`` is below 13.
    """
    if to < LOWEST_GOAL:
        raise Unsupported(
            "E231",
            f"the model cannot be lowered to opset {to}",
            why=f"the lowest opset that passes read is {LOWEST_GOAL}",
            fix=f"ask for opset {LOWEST_GOAL} or a later one",
        )
    problems = _lower(clone_model(model), to)
    if problems:
        raise ErrorList(problems)
    _lower(model, to)
    model.ir_version = ir_version_of(model.opset_imports)


def _lower(model: ir.Model, to: int) -> list[Unsupported]:
    """Lower ``model`` to opset ``to``; return a refusal for each node that stays as it is."""
    shapes = ShapeInference(model)
    shapes.infer_model()
    shapes.restore_interface()
    roots = [(model.graph, model.opset_imports)]
    roots += [(function.graph, function.opset_imports) for function in model.functions.values()]
    highest = max(imports.get("", to) for _, imports in roots)
    refused: dict[ir.Node, Unsupported] = {}
    for version in range(highest, to, -1):
        roots_at_version = [(root, table) for root, table in roots if table.get("", to) == version]
        for _, imports in roots_at_version:
            imports[""] = version - 1
        shapes = ShapeInference(model)
        lowering = _Step(Rewriter(model, shapes, Constants()), version)
        for root, _ in roots_at_version:
            for node in [node for node in scope.nodes_below(root) if node not in refused]:
                reason = lowering.lower(node)
                if reason:
                    refused[node] = _refusal(node, version, to, reason)
        lowering.rewriter.flush()
        shapes.restore_interface()
    return list(refused.values())


class _Step:
    """Lowers nodes from the opset ``version`` to the one before."""

    def __init__(self, rewriter: Rewriter, version: int) -> None:
        self.rewriter = rewriter
        self.version = version

    def lower(self, node: ir.Node) -> str:
        """Give ``node`` its form of the earlier opset; return why that is impossible, or ''."""
        if node.domain or node in self.rewriter.dead or node.graph is None:
            return ""
        schema = opset.schema(node.op_type, self.version)
        if schema is None or schema.since_version != self.version:
            return ""
        lowering = LOWERINGS.get((node.op_type, self.version))
        why = "" if lowering is None else lowering(node, self.rewriter)
        if node in self.rewriter.dead:
            return ""
        why = why or misfit(node, self.version)
        if not why or self._try_widen(node):
            return ""
        return self._expand(node, why)

    def _try_widen(self, node: ir.Node) -> bool:
        """Replace ``node`` by casts to a wider type, the same operator, and casts back; return True
        if done.

        False, and nothing changes, unless the earlier schema lacks a type of ``node`` and accepts
        the wider one.
        """
        narrow = _narrow_types(node, self.version)
        if not narrow or scope.carries_graphs(node):
            return False
        builder = self.rewriter.builder(node, [node], RULE)
        operands = [
            builder.cast(value, WIDER[value.dtype])
            if value is not None and value.dtype in narrow
            else value
            for value in node.inputs
        ]
        attributes = list(node.attributes.values())
        wide = ir.Node("", node.op_type, operands, attributes, num_outputs=len(node.outputs))
        results = builder.add(wide)
        if misfit(wide, self.version):
            builder.discard()
            return False
        pairs = zip(node.outputs, results, strict=True)
        back = [builder.cast(new, old.dtype) if old.dtype in narrow else new for old, new in pairs]
        self.rewriter.replace(node, back, trust_shape=True)
        return True

    def _expand(self, node: ir.Node, why: str) -> str:
        """Replace ``node`` by its function body at the earlier opset; return why not, or ''."""
        body_versions = body_opsets(node.op_type, self.version)
        if not body_versions:
            return why
        if any(value is not None and value.dtype is None for value in node.inputs):
            return f"{why}, and the element type of an operand is not known"
        earlier_versions = [number for number in body_versions if number < self.version]
        imported = self.version - 1 if earlier_versions else min(body_versions)
        body = body_of(node, self.version, imported)
        if not isinstance(body, ir.Graph):
            return f"{why}, and ONNX defines no function body for these operands"
        if not earlier_versions:
            inner_problems = _lower(ir.Model(body, ir_version=10), self.version - 1)
            if inner_problems:
                return f"its function body has operators without a form: {inner_problems[0].why}"
        bindings = [*node.inputs, *(None for _ in body.inputs[len(node.inputs) :])]
        try:
            inline(self.rewriter, node, body, bindings, rule=RULE, foreign=True)
        except Refused as refused:
            return f"its function body does not fit: {refused}"
        return ""


def misfit(node: ir.Node, version: int) -> str:
    """Adapt ``node`` to the opset before ``version``; return why that is impossible, else ''.

    Attributes that the earlier schema lacks are dropped if they have their default value; absent
    ones whose default changed are written.
    """
    new, old = opset.schema(node.op_type, version), opset.schema(node.op_type, version - 1)
    assert new is not None
    if old is None or old.deprecated:
        return f"{node.op_type} begins with opset {version}"
    while node.inputs and node.inputs[-1] is None:
        node.resize_inputs(len(node.inputs) - 1)
    if not old.min_input <= len(node.inputs) <= old.max_input:
        return f"it has {len(node.inputs)} inputs, the earlier form {old.max_input} at most"
    if len(node.outputs) > old.max_output:
        return f"it has {len(node.outputs)} outputs, the earlier form {old.max_output} at most"
    return _misfit_of_attributes(node, version, old) or next(_misfits_of_types(node, old), "")


def _misfit_of_attributes(node: ir.Node, version: int, old: onnx.defs.OpSchema) -> str:
    """Adapt the attributes of ``node`` to the schema ``old``; return why not, else ''."""
    for name, attribute in list(node.attributes.items()):
        if name in old.attributes:
            continue
        default = opset.default_attribute(node.op_type, name, version)
        if attribute.is_ref() or default is None or attribute.value != default:
            return f"the attribute {name!r} begins with opset {version}"
        del node.attributes[name]
    for name in old.attributes.keys() - node.attributes.keys():
        new_default, old_default = (
            opset.default_attribute(node.op_type, name, v) for v in (version, version - 1)
        )
        if new_default is not None and new_default != old_default:
            node.attributes.add(ir.convenience.convert_attribute(name, new_default))
    return ""


def _misfits_of_types(node: ir.Node, schema: onnx.defs.OpSchema) -> Iterator[str]:
    """Yield each violation of ``schema`` by the element types of ``node``."""
    bound: dict[str, str] = {}
    for formals, values in ((schema.inputs, node.inputs), (schema.outputs, node.outputs)):
        for index, value in enumerate(values):
            formal = formals[min(index, len(formals) - 1)]
            text = "" if value is None else _type(value)
            if not text:
                continue
            if text not in formal.types:
                yield f"{node.op_type} does not accept {text} at this opset"
            elif formal.is_homogeneous and bound.setdefault(formal.type_str, text) != text:
                yield (
                    f"{node.op_type} does not accept {text} together with another type at this "
                    "opset"
                )


def _type(value: ir.Value) -> str:
    """Return the type of ``value`` as schemas write it, '' if it is unknown."""
    if isinstance(value.type, ir.TensorType) or value.type is None:
        return f"tensor({value.dtype.name.lower()})" if value.dtype is not None else ""
    return str(value.type).lower().replace("sequence(", "seq(").replace(" ", "")


def _narrow_types(node: ir.Node, version: int) -> set[ir.DataType]:
    """Return the element types of ``node`` that must be widened for the opset before ``version``;
    empty if one of them is integer or bool and widening it would change the result."""
    old = opset.schema(node.op_type, version - 1)
    if old is None or old.deprecated or len(node.inputs) > old.max_input:
        return set()
    narrow_types: set[ir.DataType] = set()
    for index, value in enumerate(node.inputs):
        dtype = None if value is None else value.dtype
        if value is None or dtype is None or dtype not in WIDER:
            continue
        is_refused = _type(value) not in old.inputs[min(index, len(old.inputs) - 1)].types
        if is_refused or (dtype.is_floating_point() and _is_mixed(node, index, old)):
            narrow_types.add(dtype)
    floats = {narrow for narrow in narrow_types if narrow.is_floating_point()}
    integers = narrow_types - floats - {ir.DataType.BOOL}
    if (integers and node.op_type not in OF_INTEGERS) or (
        ir.DataType.BOOL in narrow_types and node.op_type not in OF_BOOLS
    ):
        return set()
    return narrow_types


def _is_mixed(node: ir.Node, index: int, schema: onnx.defs.OpSchema) -> bool:
    """True if another operand of ``node`` with the type variable of input ``index`` differs."""
    formals = schema.inputs
    variable = formals[min(index, len(formals) - 1)].type_str
    types = {
        _type(value)
        for other, value in enumerate(node.inputs)
        if value is not None and formals[min(other, len(formals) - 1)].type_str == variable
    }
    return len(types) > 1


def _refusal(node: ir.Node, version: int, to: int, why: str) -> Unsupported:
    """Return the error E231 for ``node``, which has no form at opset ``to``."""
    return Unsupported(
        "E231",
        f"operator {node.op_type} has no form at opset {to}",
        at=f"node {node.name!r} ({node.op_type})",
        why=why,
        fix=f"ask for opset {version} or a later one",
    )


@cache
def way_down(op_type: str, version: int) -> str:
    """Return how nodes of an operator that changed at ``version`` are lowered to the opset before,
    as a cell of the table in ``docs/opsets.md``."""
    new, old = opset.schema(op_type, version), opset.schema(op_type, version - 1)
    assert new is not None
    row: Any = LOWERINGS.get((op_type, version))
    ways = [row.__doc__.splitlines()[0].rstrip(".")] if row is not None else []
    if old is not None and not old.deprecated and not new.deprecated:
        ways += ["unchanged, if its types and attributes exist there"]
        ways += ["operands cast to a wider type"] if _widened_types(op_type, new, old) else []
    if body_opsets(op_type, version):
        ways += ["else its function body" if ways else "its function body"]
    return "; ".join(ways) or "refused"


def _widened_types(op_type: str, new: onnx.defs.OpSchema, old: onnx.defs.OpSchema) -> set[str]:
    """Return the types that the schema ``new`` has and ``old`` lacks, and that ``WIDER``
    replaces."""
    added = {text for constraint in new.type_constraints for text in constraint.allowed_type_strs}
    added -= {text for constraint in old.type_constraints for text in constraint.allowed_type_strs}
    integers = WIDER if op_type in OF_INTEGERS else ()
    usable = {d for d in WIDER if d.is_floating_point()} | {d for d in integers if d.is_integer()}
    if op_type in OF_BOOLS:
        usable.add(ir.DataType.BOOL)
    return added & {f"tensor({dtype.name.lower()})" for dtype in usable}
