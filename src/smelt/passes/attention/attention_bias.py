"""Build the bias input of an ``Attention`` from the masks and biases that models write.

Names in the match: ``mask`` (True keeps a score) or ``hidden`` (True replaces it) with the number
``low``; ``bias`` and ``more``, which are added to the scores; ``late_factor`` and ``late_divisor``,
which scale the sum; ``last``, which is added to the scaled sum, or ``subtracted`` from it;
``then``, which is added after masking; ``least``, a lower bound of the scores.

A row of scores belongs to one query; a mask "shows" a key in a row if it keeps that score.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.rule import Match, Miss
from smelt.ir.same_shape import same_dim
from smelt.ir.symbolic_dims.clamped_dims import all_equal_if_broadcast
from smelt.ir.value_facts.affine_moves import is_one
from smelt.ir.walk import both_orders, producer_of
from smelt.passes.attention.causal_mask import FLOOR, LOW, on_diagonal
from smelt.passes.attention.mask_relative_to_row_max import LOWEST, mask_relative_to_row_max
from smelt.passes.attention.raise_bias_to_floor import raise_bias_to_floor
from smelt.passes.attention.rounding_order import rounds_alike
from smelt.passes.size_from_inputs import shape_from_inputs

LOW_ENOUGH = -1e9
"""No score is this low: as a replacement it hides a score; as an addend it would only round the
score."""


def bias_of(m: Match, b: Builder) -> tuple[ir.Value, ...] | Miss:
    """Return the bias to add to the scores as a tuple of one value, () if there is none, or a Miss.

    The bias has the dtype of the scores and their last two dims: a mask that broadcasts along
    queries or keys is expanded, because runtimes accept no other.
    """
    hidden = m.get("hidden")
    mask = m.get("mask") if hidden is None else hidden
    least = m.scalar("least") if m.get("least") is not None else -math.inf
    if least is None:
        return Miss("the lower bound of the scores is not one constant number")
    masked_score = LOW if m["q"].dtype == ir.DataType.FLOAT else -math.inf
    if not least <= masked_score:
        return Miss("the lower bound of the scores is above a masked score")
    if m.get("then") is not None:
        return _bias_behind_mask(m, b)
    last_term = _last_term(m, b)
    if m.get("bias") is not None and not rounds_alike(last_term, m):  # fuse_attention keeps 3
        return Miss("masks and biases that are added one by one round otherwise than their sum")
    bias = _sum_of_terms(last_term, m, b)
    if bias is None and mask is None:
        return ()
    if bias is not None and not _missing_axes(bias, m):
        return Miss("the bias is not proved to broadcast to the scores")
    if bias is not None:
        bias = _without_lowest(_hidden_by_number(bias, m, b), m, b)
        if bias is None:
            return Miss("the bias may be infinite, or hide all keys of a row")
    if mask is not None:
        if not _missing_axes(mask, m):
            return Miss("the mask is not proved to broadcast to the scores")
        masked_bias = _choice_of_bias(mask, hidden is None, bias, m, b)
        if isinstance(masked_bias, Miss):
            return masked_bias
        bias = masked_bias
    assert bias is not None
    return _as_operand(bias, m, b)


def _hidden_by_number(added: ir.Value, m: Match, b: Builder) -> ir.Value:
    """Replace -inf in a choice between -inf and 0 by ``FLOOR``, if no row is hidden completely.

    PyTorch's TorchScript exporter writes the triangle of a causal attention with -inf.
    """
    node = producer_of(added, "Where")
    if node is None or added.dtype != ir.DataType.FLOAT:
        return added
    numbers = [m.scalar(value) for value in node.inputs[1:]]
    if set(numbers) != {0, -math.inf}:
        return added
    if not _shows_each_row(node.inputs[0], numbers[0] == 0, m):  # fuse_attention keeps 1
        return added
    floor = b.constant(np.asarray(FLOOR, np.float32))
    chosen = [
        floor if number else value for number, value in zip(numbers, node.inputs[1:], strict=True)
    ]
    return b.op("Where", node.inputs[0], *chosen)


def _bias_behind_mask(m: Match, b: Builder) -> tuple[ir.Value, ...] | Miss:
    """Return the bias for scores ``Where(mask, score, low) + then``, as in GPT-Neo, or a Miss.

    The bias is ``Where(mask, 0, low) + then``. A key hidden by both terms gets a lower number than
    a key hidden by one, which only matters in a row whose keys are all hidden. In float16 the
    scores would matter there, too, so only float32 is accepted.
    """
    hidden, then, low = m.get("hidden"), m["then"], m.scalar("low")
    if m["q"].dtype != ir.DataType.FLOAT:
        return Miss("the element type is not float32, and the mask may hide all keys of a row")
    if low is None or not -math.inf < low <= LOW:  # fuse_attention needs 7
        return Miss(_too_high(low))
    mask = m["mask"] if hidden is None else hidden
    if not _missing_axes(mask, m):
        return Miss("the mask is not proved to broadcast to the scores")
    if not _missing_axes(then, m):
        return Miss("the bias is not proved to broadcast to the scores")
    bottom, zero = (b.constant(np.asarray(n, np.float32)) for n in (low, 0))
    branches = (zero, bottom) if hidden is None else (bottom, zero)
    chosen = b.op("Where", mask, *branches)
    added = _without_lowest(b.op("Add", chosen, then), m, b)
    if added is None:
        return Miss("the bias may be infinite, or hide all keys of a row")
    return _as_operand(added, m, b)


def _as_operand(added: ir.Value, m: Match, b: Builder) -> tuple[ir.Value, ...] | Miss:
    """Return ``added`` expanded to the last two dims of the scores and with rank 2 or 4, or a
    Miss.
    """
    missing = _missing_axes(added, m)
    if missing is None:
        return Miss("the bias is not proved to broadcast to the scores")
    if missing[1] and not _are_equally_long(m["keys"], m["v"]):
        return Miss("keys and values are not proved to be equally many")
    (bias,) = _expanded(added, missing, m, b)
    is_per_head = bias.shape is not None and len(bias.shape) == 3
    return (b.op("Unsqueeze", bias, b.const_i64([0])) if is_per_head else bias,)


def _too_high(low: object) -> str:
    """Return why the masking number ``low`` is refused; it is None if it is not constant."""
    if low is None:
        return "the masking number is not one constant number"
    return "the masking number is not below all scores"


def _without_lowest(added: ir.Value, m: Match, b: Builder) -> ir.Value | None:
    """Return ``added`` without the lowest float32 and without float16 rows that hide all keys.

    ONNX Runtime treats both specially. Returns None if the mending would cost as much as a softmax.
    """
    if m["q"].dtype == ir.DataType.FLOAT:
        return raise_bias_to_floor(added, m, b, m.get("least") is not None)
    return mask_relative_to_row_max(added, m, b)


def _last_term(m: Match, b: Builder) -> ir.Value | None:
    """Return what is added last: ``last``, or the negative of ``subtracted``; None without both.

    A constant factor of a subtracted mask is negated instead of the mask.
    """
    mask = m.get("subtracted")
    if mask is None:
        return m.get("last")
    mul = producer_of(mask, "Mul")
    for value, factor in both_orders(mul):
        array = m.array(factor)
        if array is not None and value is not None:
            return b.op("Mul", value, b.constant(np.negative(array)))
    return b.op("Neg", mask)


def _sum_of_terms(last: ir.Value | None, m: Match, b: Builder) -> ir.Value | None:
    """Return ``bias + more``, scaled by the late factor or divisor, plus ``last``.

    None if nothing is added.
    """
    bias, more = m.get("bias"), m.get("more")
    if bias is None:
        return last
    if more is None and last is None and _adds_nothing(bias, m):
        return None
    if more is not None:
        bias = b.op("Add", bias, more)
    factor, divisor = m.get("late_factor"), m.get("late_divisor")
    if factor is not None:
        bias = b.op("Mul", bias, factor)
    elif divisor is not None:
        bias = b.op("Div", bias, divisor)
    return bias if last is None else b.op("Add", bias, last)


def _adds_nothing(bias: ir.Value, m: Match) -> bool:
    """True if ``bias`` is a constant of zeros, which ``torch.baddbmm`` gets if it adds nothing."""
    array = m.array(bias, None)
    return array is not None and not array.any() and _missing_axes(bias, m) is not None


def _choice_of_bias(
    mask: ir.Value, keeps_scores: bool, added: ir.Value | None, m: Match, b: Builder
) -> ir.Value | Miss:
    """Return ``Where(mask, added or 0, bottom)`` if True keeps scores, else ``Where(mask, bottom,
    ...)``.

    ``bottom`` is lower than every score. Returns a Miss if ``low`` is too high, or if the mask may
    hide a whole row.
    """
    low, is_half = m.scalar("low"), m["q"].dtype != ir.DataType.FLOAT
    highest_of_floats = LOW_ENOUGH if added is None else LOW
    highest_allowed = LOWEST if is_half else highest_of_floats
    if low is None or not low <= highest_allowed:  # fuse_attention needs 7
        return Miss(_too_high(low))
    has_infinity = is_half or low == -math.inf
    if has_infinity and not _shows_each_row(mask, keeps_scores, m):  # fuse_attention keeps 1
        return Miss("the mask may hide all keys of a row")
    number_type = np.float16 if is_half else np.float32
    number = max(low, FLOOR) if low <= LOW else FLOOR
    bottom = b.constant(np.asarray(-math.inf if is_half else number, number_type))
    shown_value = b.constant(np.asarray(0, number_type)) if added is None else added
    branches = (shown_value, bottom) if keeps_scores else (bottom, shown_value)
    return b.op("Where", mask, *branches)


def _are_equally_long(keys: ir.Value, v: ir.Value) -> bool:
    """True if keys B,H,D,S and values B,H,S,D have equal S, so a mask of one key may expand."""
    return keys.shape is not None and v.shape is not None and same_dim(keys.shape[3], v.shape[2])


def _expanded(
    bias: ir.Value, missing: tuple[bool, bool], m: Match, b: Builder
) -> tuple[ir.Value, ...]:
    """Return ``bias`` expanded along queries if ``missing[0]``, along keys if ``missing[1]``."""
    queries, keys = m["q"].shape, m["keys"].shape
    if not any(missing) or queries is None or keys is None:
        return (bias,)
    dims = [queries[2] if missing[0] else 1, keys[3] if missing[1] else 1]
    shape = shape_from_inputs([1, 1, *dims], b.graph, b)
    if shape is None:
        read_sizes = [b.size(value, axis) for value, axis in ((m["q"], 2), (m["keys"], 3))]
        shape = b.op("Concat", b.const_i64([1, 1]), *read_sizes, axis=0)
    return (b.op("Expand", bias, shape),)


def _shows_each_row(mask: ir.Value | None, shown: bool, m: Match) -> bool:
    """True if ``mask`` shows a key to each query of the match; False without a mask."""
    return mask is not None and shows_each_row(mask, shown, m["q"].shape, m.constants)


def shows_each_row(
    mask: ir.Value, shown: bool, queries: ir.Shape | None, constants: Constants
) -> bool:
    """True if each row of ``mask`` is proved to have a key where the mask equals ``shown``.

    Dim 2 of ``queries`` is the number of rows.
    """
    array = constants.get(mask, None)
    if array is not None:
        return bool((array == shown).any(-1).all())
    return queries is not None and on_diagonal(mask, queries[2], constants) == shown


def _missing_axes(mask: ir.Value, m: Match) -> tuple[bool, bool] | None:
    """Return whether ``mask`` has size 1 along the axis of the queries, and along that of the keys.

    A mask [B,1,1,keys] gives (True, False). None if the mask may not broadcast to the scores. An
    unknown size along the keys is 1 or the number of keys, because the product with the values
    requires as many weights as keys.
    """
    shape, q, keys = mask.shape, m["q"], m["keys"]
    if shape is None or q.shape is None or keys.shape is None:
        return None
    if len(shape) not in (2, 3, 4):
        return None
    leading_dims = zip(shape.dims[:-2], q.shape.dims[4 - len(shape) : 2], strict=True)
    if not all(dim == 1 or same_dim(dim, score_dim) for dim, score_dim in leading_dims):
        return None
    sizes = (q.shape[2], keys.shape[3])
    is_full = all_equal_if_broadcast(shape.dims[-2:], sizes)
    if not is_full[0] and not is_one(shape[-2]):
        return None
    if isinstance(shape[-1], int) and isinstance(sizes[1], int) and shape[-1] not in (1, sizes[1]):
        return None
    return not is_full[0], not is_full[1]
