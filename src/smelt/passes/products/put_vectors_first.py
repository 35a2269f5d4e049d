"""Multiply a matrix with a vector so that runtimes read the matrix row by row.

    before   w: M,K, x: K ─> MatMul(w, x) ─> y: M        after   MatMul(x, w: K,M) ─> y
    before   a: B,M,K, x: K ─> MatMul(a, x) ─> y: B,M    after   MatMul(a, x: K,1) ─> B,M,1 ─> y

Layers of equinox or flax on one example, and cells that are scanned without a batch, have such
products. ONNX Runtime computes them 4 to 60 times slower than with the vector first, or with the
vector as a matrix of one column. A constant matrix is transposed at compile time, a Transpose
before the product is dropped, and any other matrix is multiplied by a column.

Needs    (1) floats, a second operand of rank 1, and a first one of rank 2 or more; (2) a constant
         that only such products read, because it would be stored twice; (3) for a column, a matrix
         not known to have under 256 elements, where two more nodes cost what they save.
Keeps    (1) products of two vectors; (2) integers and products of dequantized operands; (3) the
         Transpose for its other readers.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.known_forms import is_known
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.walk import producer_of
from smelt.passes.base import rounding, rule_pass
from smelt.passes.products.fuse_transpose_matmul import GEMM, swaps_matrices
from smelt.passes.quantize.quantized_groups import is_dequantized

LEAST_ELEMENTS = 256
"""Number of matrix elements from which on the product with a column is faster."""


@rule(op("MatMul", var("matrix"), var("vector")), same_shape=True)
def vector_first(m: Match, b: Builder) -> Replacement:
    """Replace MatMul(matrix, vector) by MatMul(vector, transposed matrix), or by a product with a
    column."""
    matrix, vector = m["matrix"], m["vector"]
    if not is_matrix_of_vector(m.root):  # needs 1, keeps 1
        return None
    if is_dequantized(matrix):  # keeps 2
        return Miss("the matrix is dequantized")
    if m.root.outputs[0].dtype not in GEMM:  # keeps 2
        return Miss("the operands are not floats")
    moved = producer_of(matrix, "Transpose")
    if moved is not None and moved.inputs[0] is not None and swaps_matrices(moved):
        return b.op("MatMul", vector, moved.inputs[0])  # keeps 3
    array = m.array(matrix, limit=None)
    if array is not None and _has_only_vector_products(matrix):  # needs 2
        transposed = np.ascontiguousarray(np.swapaxes(array, -1, -2))
        return b.op("MatMul", vector, b.constant(transposed, name=matrix.name))
    if _is_small(matrix):  # needs 3
        return Miss("the matrix is small, so a product with a column is not faster")
    column = b.op("Unsqueeze", vector, b.const_i64([1]))
    return b.op("Squeeze", b.op("MatMul", matrix, column), b.const_i64([-1]))


def is_matrix_of_vector(node: ir.Node) -> bool:
    """True for a MatMul of a matrix or stack of matrices with a vector on the right."""
    if node.op_type != "MatMul" or node.domain or not is_known(node):
        return False
    ranks = [len(v.shape) if v is not None and v.shape is not None else 0 for v in node.inputs]
    return ranks[0] >= 2 and ranks[1] == 1


def _has_only_vector_products(matrix: ir.Value) -> bool:
    """True if all readers of the constant ``matrix`` multiply it with a vector.

    Then the transposed copy takes its place; another reader would need the first one stored, too.
    """
    return not matrix.is_graph_output() and all(
        is_matrix_of_vector(node) and node.inputs[0] is matrix for node in scope.consumers(matrix)
    )


def _is_small(matrix: ir.Value) -> bool:
    """True if ``matrix``, or a stack of them, is known to have under LEAST_ELEMENTS elements."""
    assert matrix.shape is not None
    dims = [dim for dim in matrix.shape if isinstance(dim, int)]
    return len(dims) == len(matrix.shape) and math.prod(dims) < LEAST_ELEMENTS


put_vectors_first = rule_pass(
    "put_vectors_first",
    __doc__,
    [vector_first],
    exactness=rounding(4),
)
