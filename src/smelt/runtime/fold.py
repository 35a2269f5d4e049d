"""Evaluate one node on constant inputs, for constant folding.

The kernels are those of ``onnx.reference``, in NumPy: a call takes some 100 microseconds, and a
result does not depend on what this machine has installed. Where the ONNX specification leaves a
result open, or a runtime would trap, the node is left alone: better a model that is not folded
than one that is folded to something else.
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
from smelt.ir.out_of_memory import is_out_of_memory
from smelt.ir.raise_opset import LOWEST_GOAL
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
"""Random, holding graphs, without a kernel in NumPy, or operators on which runtimes disagree."""

BY_KERNELS = frozenset(
    {
        *("AveragePool", "Gelu", "GlobalLpPool", "GridSample", "GroupNormalization", "GRU"),
        *("LSTM", "LpPool", "MaxPool", "MeanVarianceNormalization", "Resize", "RNN"),
    }
)
"""Operators whose reference kernels are slow, missing, or depart from runtimes. The kernels of a
target compute them where an evaluator is given some, as of ``Kernels``."""

FIRST_OPSET = {
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), 13),
    "BatchNormalization": 9,
    "RoiAlign": 16,
}
"""The reference kernels give an operator its newest meaning, which begins here."""

OLDEST_OPSET = 7
"""Before it operands did not broadcast by themselves."""

SUMS = frozenset(
    {
        *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd"),
        *("ReduceSum", "ReduceSumSquare", "MatMul", "Gemm", "Einsum", "Conv", "ConvTranspose"),
        *("GlobalAveragePool", "LpNormalization", "Softmax", "LogSoftmax"),
        *("InstanceNormalization", "LayerNormalization", "RMSNormalization"),
    }
)
"""Operators that add up many numbers. NumPy adds them one after the other along all axes but the
last: of float16, a sum of 8,192 came out by a quarter too small. So they are computed as double."""

SCALARS = {"CumProd": 1, "CumSum": 1, "OneHot": 1}
"""Places of operands that are scalars to the reference kernels, and to runtimes vectors of one."""

Evaluate = Callable[[ir.Node, Inputs], list[np.ndarray] | None]


Kernels = Callable[[ir.Node, Inputs, int], list[np.ndarray] | None]
"""Computes a node at an ONNX opset, or gives None: what no kernel takes, or runtimes may compute
to something else."""


def evaluator(model: ir.Model, kernels: Kernels | None = None) -> Evaluate:
    """``evaluate_node`` for the nodes of ``model``, as a function of node and inputs alone."""
    imports = _imports_of_graphs(model)

    def evaluate(node: ir.Node, inputs: Inputs) -> list[np.ndarray] | None:
        known = imports.get(node.graph) if isinstance(node.graph, ir.Graph) else None
        if known is None:
            return None
        return evaluate_node(node, inputs, opset=known.get("", 1), kernels=kernels)

    return evaluate


def _imports_of_graphs(model: ir.Model) -> dict[ir.Graph, dict[str, int]]:
    """What each graph imports, which may be raised later; a function may import its own."""
    imports: dict[ir.Graph, dict[str, int]] = {}
    roots = [(model.graph, model.opset_imports)]
    roots += [(f.graph, f.opset_imports) for f in model.functions.values()]
    for root, versions in roots:
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
    """The outputs of ``node`` on ``inputs`` (None for an absent one), or None to leave it alone.

    ``opset`` is the version of the ONNX domain that the model imports. Nothing is computed
    before the size of the result is known to stay within ``size_limit`` bytes. The arrays have
    the element types of the node's outputs and are read-only. ``kernels`` compute the operators
    ``BY_KERNELS``, and older forms of others.
    """
    by_reference = bool(node.domain) or _is_folded(node, opset)
    if not by_reference and (kernels is None or not _is_computed(node, opset)):
        return None
    if node.domain and _of_elements(node) is None:
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
    """True for an operator of ONNX whose reference kernel says what it means as of ``opset``."""
    if node.op_type in NEVER or node.op_type in BY_KERNELS:
        return False
    return opset >= FIRST_OPSET.get(node.op_type, OLDEST_OPSET)


def _is_computed(node: ir.Node, opset: int) -> bool:
    """True for an operator of ONNX that is left to the kernels of a target."""
    return opset >= LOWEST_GOAL and node.op_type in {*BY_KERNELS, *FIRST_OPSET}


def _of_elements(node: ir.Node) -> Operator | None:
    """The declared operator that ``node`` computes element by element, if it does.

    Others, such as decompositions, may take much longer than to read their operands.
    """
    operator = find(node.domain, node.op_type)
    return operator if isinstance(operator, Elementwise) or operator is BITCAST else None


def _results(node: ir.Node, inputs: Inputs, opset: int) -> list[np.ndarray] | None:
    operator = _of_elements(node) if node.domain else None
    if operator is not None:
        return list(operator.reference(inputs, operator.attributes_of(node)))
    source, target = inputs[0] if inputs else None, node.outputs[0].dtype
    if source is not None and target is not None and is_integer_cast(node, source):
        return [cast_integers(source, target)]
    view = moved(node, inputs)
    return _run(node, inputs, opset) if view is None else [_own(view, inputs)]


FAILURES = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, NameError),
    *(NotImplementedError, RuntimeError, TypeError, ValueError),
)
"""What a reference kernel raises for operands that it does not take: they check little, and trip
over an absent operand or another rank wherever they first touch it."""


def _run(node: ir.Node, inputs: Inputs, opset: int) -> list[np.ndarray] | None:
    _check_kernels()
    own = in_double(node.op_type)
    if own is not None and inputs and inputs[0] is not None and inputs[0].dtype == np.float64:
        return list(own(inputs, {}))
    sums = node.op_type in SUMS
    read = [_as_double(x) for x in inputs] if sums else list(inputs)
    place = SCALARS.get(node.op_type)
    if place is not None and (one := read[place]) is not None and one.size == 1:
        read[place] = one.reshape(())
    try:
        results = _call(ir.serde.serialize_node(node), read, opset)
    except FAILURES:
        return None
    if len(results) < len(node.outputs):
        return None
    if sums:
        results = [_narrowed(x, v) for x, v in zip(results, node.outputs, strict=False)]
    arrays = [_own(result, inputs) for result in results[: len(node.outputs)]]
    return arrays if all(array.dtype != object for array in arrays) else None


def _as_double(x: np.ndarray | None) -> np.ndarray | None:
    return x if x is None or not is_float(x.dtype) else x.astype(np.float64)


def _narrowed(result: object, output: ir.Value) -> object:
    """``result`` rounded once, to the type of the output."""
    if output.dtype is None or not isinstance(result, np.ndarray | np.generic):
        return result
    with np.errstate(all="ignore"):
        return result.astype(output.dtype.numpy()) if is_float(result.dtype) else result


def _call(proto: onnx.NodeProto, inputs: Inputs, opset: int) -> Sequence[object]:
    """The results of one node by the kernels of onnx's reference evaluator."""
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.ops._op_list import load_op

    kernel = load_op("", proto.op_type, opset, evaluator_cls=ReferenceEvaluator)
    parameters = {"log": _silent, "opsets": {"": opset}, "new_ops": None, "verbose": 0}
    with np.errstate(all="ignore"):
        results: Sequence[object] = kernel(proto, parameters).run(*inputs)
    return results


@cache
def _check_kernels() -> None:
    """Raise InternalError E908 if one and one is not two: a failure then is none of the operands.

    Else a version of onnx that calls kernels in another way would end all folding without a word.
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
    return InternalError(
        "E908",
        f"smelt does not know how to call the reference kernels of onnx {metadata.version('onnx')}",
        why=why,
        fix="install a version of onnx that smelt is tested with",
    )


def _own(result: object, inputs: Inputs) -> np.ndarray:
    """``result`` as an array that nobody can write to by another name.

    A view of a constant that is read-only stays one: a weight that is reshaped is not copied.
    """
    array = np.asarray(result)
    others = (x for x in inputs if x is not None and x.flags.writeable)
    return array.copy() if any(np.may_share_memory(array, x) for x in others) else array


def _silent(pattern: str, *arguments: object) -> None:
    """The log of a reference kernel."""


def _as_declared(array: np.ndarray, output: ir.Value) -> bool:
    """True if the result has the type that the graph declares for it."""
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
