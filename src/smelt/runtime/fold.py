"""Evaluate one node on constant inputs, for constant folding.

The kernels are those of ``onnx.reference`` in NumPy. A call takes about 100 microseconds, and
results do not depend on which runtimes are installed. A node is not folded if ONNX leaves its
result undefined or a runtime would trap, because a wrong constant is worse than no folding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from smelt.errors import InternalError
from smelt.ir import scope
from smelt.ir.floats import is_float
from smelt.ir.opsets.raise_opset import LOWEST_GOAL
from smelt.ir.out_of_memory import is_out_of_memory
from smelt.operators.bitcast import OPERATOR as BITCAST
from smelt.operators.declare import Operator
from smelt.operators.formula import Elementwise
from smelt.operators.registry import find
from smelt.runtime.fold_limits import SIZE_LIMIT, Inputs, is_bounded, is_undefined
from smelt.runtime.integer_cast import cast_integers, is_integer_cast
from smelt.runtime.movement import moved
from smelt.runtime.reference_operators import in_double

if TYPE_CHECKING:
    import onnx

NEVER = frozenset(
    {
        *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        *("Bernoulli", "Multinomial", "Dropout"),
        *("If", "Loop", "Scan", "SequenceMap", "Optional", "StringNormalizer", "ImageDecoder"),
        *("DFT", "STFT", "MaxUnpool", "MaxRoiPool"),
    }
)
"""Operators that are random, hold graphs, lack a NumPy kernel, or differ between runtimes."""

BY_KERNELS = frozenset(
    {
        *("AveragePool", "Gelu", "GlobalLpPool", "GridSample", "GroupNormalization", "GRU"),
        *("LSTM", "LpPool", "MaxPool", "MeanVarianceNormalization", "Resize", "RNN"),
    }
)
"""Operators with slow, missing or differing reference kernels; ``Kernels`` compute them."""

FIRST_OPSET = {
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), 13),
    "BatchNormalization": 9,
    "RoiAlign": 16,
}
"""The first opset whose meaning of the operator is that of the reference kernel."""

OLDEST_OPSET = 7
"""Before this opset, operands did not broadcast implicitly."""

SUMS = frozenset(
    {
        *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd"),
        *("ReduceSum", "ReduceSumSquare", "MatMul", "Gemm", "Einsum", "Conv", "ConvTranspose"),
        *("GlobalAveragePool", "LpNormalization", "Softmax", "LogSoftmax"),
        *("InstanceNormalization", "LayerNormalization", "RMSNormalization"),
    }
)
"""Operators that sum many numbers, computed in double.

Along all axes but the last, NumPy adds sequentially. A sum of 8,192 float16 numbers was a quarter
too small.
"""

SCALARS = {"CumProd": 1, "CumSum": 1, "OneHot": 1}
"""Operands that reference kernels expect as scalars and runtimes as vectors of one element."""

Evaluate = Callable[[ir.Node, Inputs], list[np.ndarray] | None]


Kernels = Callable[[ir.Node, Inputs, int], list[np.ndarray] | None]
"""From a node, its inputs and the ONNX opset to the results, None if there is no exact kernel."""


def evaluator(model: ir.Model, kernels: Kernels | None = None) -> Evaluate:
    """Return ``evaluate_node`` for the nodes of ``model``, which may get more subgraphs later."""
    imports = _imports_of_graphs(model)

    def evaluate(node: ir.Node, inputs: Inputs) -> list[np.ndarray] | None:
        """Return the results of a node at the opset of its graph, None to not fold it."""
        if node.graph not in imports:
            imports.update(_imports_of_graphs(model))
        opsets = imports.get(node.graph)
        if opsets is None:
            return None
        return evaluate_node(node, inputs, opset=opsets.get("", 1), kernels=kernels)

    return evaluate


def _imports_of_graphs(model: ir.Model) -> dict[object, dict[str, int]]:
    """Return the opset imports of each graph; functions have their own imports.

    The dicts are the model's own, so a later change of opset is seen.
    """
    imports: dict[object, dict[str, int]] = {}
    functions = ((f.graph, f.opset_imports) for f in model.functions.values())
    for root, versions in ((model.graph, model.opset_imports), *functions):
        pending = [root]
        while pending:
            graph = pending.pop()
            imports[graph] = versions
            pending.extend(inner for node in graph for inner in scope.subgraphs(node))
    return imports


def evaluate_node(
    node: ir.Node,
    inputs: Inputs,
    *,
    opset: int,
    size_limit: int = SIZE_LIMIT,
    kernels: Kernels | None = None,
) -> list[np.ndarray] | None:
    """Return the outputs of ``node`` on ``inputs`` (None for an absent one), or None to not fold
    it.

    ``opset`` is the imported version of the ONNX domain. The result's size is checked against
    ``size_limit`` bytes before any computation. The arrays have the declared element types and are
    read-only. ``kernels`` compute the operators ``BY_KERNELS`` and old forms of others.
    """
    by_reference = bool(node.domain) or _is_folded(node, opset)
    if not by_reference and (kernels is None or not _is_computed(node, opset)):
        return None
    if node.domain and _elementwise_operator(node) is None:
        return None
    if any(output.name == "" for output in node.outputs):
        return None
    if not is_bounded(node, inputs, size_limit) or is_undefined(node, inputs):
        return None
    if by_reference or kernels is None:
        results = _results(node, inputs, opset)
    else:
        results = kernels(node, inputs, opset)
    if results is None or not all(map(_as_declared, results, node.outputs)):
        return None
    for array in results:
        array.flags.writeable = False
    return results


def _is_folded(node: ir.Node, opset: int) -> bool:
    """True for an ONNX operator whose reference kernel is right at ``opset``."""
    if node.op_type in NEVER or node.op_type in BY_KERNELS:
        return False
    return opset >= FIRST_OPSET.get(node.op_type, OLDEST_OPSET)


def _is_computed(node: ir.Node, opset: int) -> bool:
    """True for an ONNX operator that a target's kernels compute."""
    return opset >= LOWEST_GOAL and node.op_type in {*BY_KERNELS, *FIRST_OPSET}


def _elementwise_operator(node: ir.Node) -> Operator | None:
    """Return the declared operator of ``node`` if it is elementwise or a Bitcast, else None.

    Other operators, such as matrix factorizations, may take much longer than loading their result.
    """
    operator = find(node.domain, node.op_type)
    return operator if isinstance(operator, Elementwise) or operator is BITCAST else None


def _results(node: ir.Node, inputs: Inputs, opset: int) -> list[np.ndarray] | None:
    """Return the results of ``node`` on constant inputs, None if they cannot be computed."""
    operator = _elementwise_operator(node) if node.domain else None
    if operator is not None:
        return list(operator.reference(inputs, operator.attributes_of(node)))
    source, target = inputs[0] if inputs else None, node.outputs[0].dtype
    if source is not None and target is not None and is_integer_cast(node, source):
        return [cast_integers(source, target)]
    view = moved(node, inputs)
    return _run(node, inputs, opset) if view is None else [_without_aliases(view, inputs)]


FAILURES = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, NameError),
    *(NotImplementedError, RuntimeError, TypeError, ValueError),
)
"""Exceptions of reference kernels, which check little, for absent operands and wrong ranks."""


def _run(node: ir.Node, inputs: Inputs, opset: int) -> list[np.ndarray] | None:
    """Compute the node by onnx's reference kernel, sums in double; None if the kernel fails."""
    _check_kernels()
    reference, first = in_double(node.op_type), inputs[0] if inputs else None
    if reference is not None and first is not None and first.dtype == np.float64:
        return list(reference(inputs, {}))
    sums = node.op_type in SUMS
    operands = [_as_double(x) for x in inputs] if sums else list(inputs)
    scalar_index = SCALARS.get(node.op_type)
    if scalar_index is not None:
        scalar = operands[scalar_index]
        if scalar is not None and scalar.size == 1:
            operands[scalar_index] = scalar.reshape(())
    try:
        results = _call(ir.serde.serialize_node(node), operands, opset)
    except FAILURES:
        return None
    if len(results) < len(node.outputs):
        return None
    if sums:
        results = [_narrowed(x, v) for x, v in zip(results, node.outputs, strict=False)]
    arrays = [_without_aliases(result, inputs) for result in results[: len(node.outputs)]]
    return arrays if all(array.dtype != object for array in arrays) else None


def _as_double(x: np.ndarray | None) -> np.ndarray | None:
    """Return floats as float64, other arrays unchanged."""
    return x if x is None or not is_float(x.dtype) else x.astype(np.float64)


def _narrowed(result: object, output: ir.Value) -> object:
    """Return ``result`` rounded once to the element type of the output."""
    if output.dtype is None or not isinstance(result, np.ndarray | np.generic):
        return result
    with np.errstate(all="ignore"):
        return result.astype(output.dtype.numpy()) if is_float(result.dtype) else result


def _call(proto: onnx.NodeProto, inputs: Inputs, opset: int) -> Sequence[object]:
    """Return the results of one node, computed by onnx's reference evaluator."""
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.ops._op_list import load_op

    kernel = load_op("", proto.op_type, opset, evaluator_cls=ReferenceEvaluator)
    parameters = {"log": _silent, "opsets": {"": opset}, "new_ops": None, "verbose": 0}
    with np.errstate(all="ignore"):
        results: Sequence[object] = kernel(proto, parameters).run(*inputs)
    return results


@cache
def _check_kernels() -> None:
    """Raise InternalError E908 if the kernels fail to add 1 + 1.

    Otherwise an onnx version with another calling convention would silently disable folding.
    """
    one = np.ones((), np.float32)
    node = ir.node("Add", [ir.Value(name="a"), ir.Value(name="b")])
    node.outputs[0].name = "c"
    try:
        (result,) = _call(ir.serde.serialize_node(node), [one, one], OLDEST_OPSET)
        if result == 2:
            return
        why = f"1 + 1 is {result}"
    except Exception as error:
        if is_out_of_memory(error):
            raise
        raise _unusable(f"{type(error).__name__}: {error}") from error
    raise _unusable(why)


def _unusable(why: str) -> InternalError:
    """Return E908: the kernels of this onnx version cannot be called."""
    return InternalError(
        "E908",
        f"smelt does not know how to call the reference kernels of onnx {metadata.version('onnx')}",
        why=why,
        fix="install a version of onnx that smelt is tested with",
    )


def _without_aliases(result: object, inputs: Inputs) -> np.ndarray:
    """Return ``result`` as an array that shares no memory with a writable input.

    A view of a read-only constant stays a view, so that a reshaped weight is not copied.
    """
    array = np.asarray(result)
    writeable_inputs = (x for x in inputs if x is not None and x.flags.writeable)
    return array.copy() if any(np.may_share_memory(array, x) for x in writeable_inputs) else array


def _silent(pattern: str, *arguments: object) -> None:
    """Discard the log of a reference kernel."""


def _as_declared(array: np.ndarray, output: ir.Value) -> bool:
    """True if ``array`` has the element type and shape that the graph declares."""
    if output.dtype is None or output.dtype == ir.DataType.STRING:
        return False
    if array.dtype != output.dtype.numpy():
        return False
    if output.shape is None:
        return True
    if len(output.shape) != array.ndim:
        return False
    pairs = zip(output.shape.dims, array.shape, strict=True)
    return all(dim == size for dim, size in pairs if isinstance(dim, int))
