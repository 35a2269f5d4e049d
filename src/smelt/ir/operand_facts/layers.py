"""Requirements of norms, attention, losses, and of operators with scalar operands."""

from __future__ import annotations

from smelt.ir.operand_facts.operands import (
    Fact,
    Facts,
    Operands,
    agree,
    at_least,
    is_axis,
    is_single,
    may_broadcast,
)

AXIS: Fact = ("axis is one of the input", lambda n: is_axis(n, 0, -1))


def _per_channel(index: int, what: str) -> Fact:
    """Require one element per channel in operand ``index``; with ``spatial=0``, one per channel and
    position."""

    def holds(n: Operands) -> bool:
        """True if the operand has the shape of the channels, or of an image without its batch."""
        places = n.dims(0)[1:] if n.number("spatial", 1) == 0 else n.dims(0)[1:2]
        return agree(n.dims(index), places or [1])

    return f"{what} has one element per channel", holds


def _per_channel_or_group(index: int, what: str) -> Fact:
    """Require one element per channel in operand ``index``; before opset 21, one per group."""

    def holds(n: Operands) -> bool:
        """True if the operand has as many elements as there are channels or groups."""
        count = n.size(0, 1) if n.opset >= 21 else n.number("num_groups", 1)
        return agree(n.dims(index), [count])

    return (f"{what} has one element per channel (per group, before opset 21)", holds)


def _needs_heads(*names: str) -> Fact:
    """Require the attributes ``names``, which count heads, if inputs have rank 3."""
    listed_names = " and ".join(names)
    return (
        f"inputs of 3 axes come with {listed_names}",
        lambda n: n.rank(0) != 3 or all(n.number(name, 0) > 0 for name in names),
    )


def _has_separate_heads(n: Operands) -> bool:
    """True if queries, keys and values have rank 4, where axis 1 counts the heads."""
    return n.rank(0) == n.rank(1) == n.rank(2) == 4


def _mask_broadcasts(n: Operands) -> bool:
    """True if the mask of an Attention broadcasts to queries by keys.

    Not checked with past keys (operand 4), which add columns, and from opset 24 on, which pads a
    mask that has too few columns.
    """
    if n.is_present(4) or n.opset > 23 or n.rank(3) < 2:
        return True
    queries, keys = n.dims(0)[-2], n.dims(1)[-2]
    return may_broadcast(n.dims(3)[-2:], (queries, keys))


ATTENTION: tuple[Fact, ...] = (
    ("inputs have 3 or 4 axes", lambda n: n.rank(0) in (3, 4)),
    _needs_heads("q_num_heads", "kv_num_heads"),
    (
        "the last axis of a query is a multiple of q_num_heads",
        lambda n: n.rank(0) != 3 or n.size(0, 2) % n.number("q_num_heads", 1) == 0,
    ),
    (
        "the number of query heads is a multiple of the number of key heads",
        lambda n: not _has_separate_heads(n) or n.size(0, 1) % max(n.size(1, 1), 1) == 0,
    ),
    (
        "heads of queries and keys have equal sizes",
        lambda n: not _has_separate_heads(n) or n.size(0, 3) == n.size(1, 3),
    ),
    ("there is a value for each key", lambda n: n.size(1, -2) == n.size(2, -2)),
    ("queries and keys have equal batch sizes", lambda n: n.size(0, 0) == n.size(1, 0)),
    ("the mask broadcasts to [queries, keys]", _mask_broadcasts),
    (
        "qk_matmul_output_mode is from 0 to 3",
        lambda n: 0 <= n.number("qk_matmul_output_mode", 0) <= 3,
    ),
)


def _one_target_per_row(n: Operands) -> bool:
    """True if targets have the shape of the scores without axis 1, which counts the classes."""
    scores = n.dims(0)
    return agree(n.dims(1), (*scores[:1], *scores[2:]))


def _caches_match_rotated_columns(n: Operands) -> bool:
    """True if the caches of a RotaryEmbedding have half as many columns as a head rotates.

    ``rotary_embedding_dim`` 0 rotates whole heads: the last axis of [batch, heads, positions, head
    size], or a share of the last axis of [batch, positions, heads * head size].
    """
    columns = n.number("rotary_embedding_dim", 0)
    if columns == 0:
        columns = n.size(0, -1)
        columns = columns if n.rank(0) == 4 else columns // max(n.number("num_heads", 1), 1)
    return n.size(1, -1) * 2 == columns


LOSS: Fact = ("there is a target for each row of scores", _one_target_per_row)

FACTS: Facts = {
    "LayerNormalization": (
        AXIS,
        ("the scale broadcasts to the input", lambda n: may_broadcast(n.dims(1), n.dims(0))),
        ("the bias broadcasts to the input", lambda n: may_broadcast(n.dims(2), n.dims(0))),
    ),
    "RMSNormalization": (
        AXIS,
        ("the scale broadcasts to the input", lambda n: may_broadcast(n.dims(1), n.dims(0))),
    ),
    "InstanceNormalization": (
        ("the input has at least 3 axes", lambda n: n.rank(0) >= 3),
        _per_channel(1, "the scale"),
        _per_channel(2, "the bias"),
    ),
    "GroupNormalization": (
        at_least("num_groups", 1),
        (
            "channels are a multiple of num_groups",
            lambda n: n.size(0, 1) % max(n.number("num_groups", 1), 1) == 0,
        ),
        _per_channel_or_group(1, "the scale"),
        _per_channel_or_group(2, "the bias"),
    ),
    "BatchNormalization": (
        _per_channel(1, "the scale"),
        _per_channel(2, "the bias"),
        _per_channel(3, "the mean"),
        _per_channel(4, "the variance"),
    ),
    "LpNormalization": (AXIS, ("p is 1 or 2", lambda n: n.number("p", 2) in (1, 2))),
    "Attention": ATTENTION,
    "RotaryEmbedding": (
        _needs_heads("num_heads"),
        ("without positions, caches have 3 axes", lambda n: n.is_present(3) or n.rank(1) == 3),
        ("caches have half as many columns as are rotated", _caches_match_rotated_columns),
    ),
    "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss": (
        ("scores have at least 2 axes", lambda n: n.rank(0) >= 2),
        LOSS,
    ),
    "Clip": (("the least is one number", is_single(1)), ("the most is one number", is_single(2))),
    "Dropout": (("the ratio is one number", is_single(1)),),
    "Det": (
        ("the input has at least 2 axes", lambda n: n.rank(0) >= 2),
        ("matrices are square", lambda n: n.size(0, -1) == n.size(0, -2)),
    ),
    "Range": tuple(
        (f"the {what} is one number", is_single(i))
        for i, what in enumerate(("start", "limit", "step"))
    ),
}
