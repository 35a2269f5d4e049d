"""Requirements of Fourier transforms."""

from __future__ import annotations

from smelt.ir.operand_facts.operands import Facts, broadcast

FACTS: Facts = {
    "DFT": (
        ("the last axis has 1 or 2 elements", lambda n: n.size(0, -1) in (1, 2)),
        ("the length is 1 or more", lambda n: min(n.integers(1), default=1) > 0),
    ),
    "STFT": (
        (
            "the window is as long as a frame",
            lambda n: broadcast([[n.size(2, 0)], n.integers(3)]),
        ),
        ("steps are 1 or more", lambda n: min(n.integers(1), default=1) > 0),
        (
            "a frame is no longer than the signal",
            lambda n: max(n.integers(3), default=0) <= n.size(0, 1),
        ),
    ),
}
