"""Models of many nodes, as ONNX text, with something in the middle to be found."""

from __future__ import annotations

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'
WEIGHTS = "<float[4,4] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}>"
PLAIN = ("Relu", "Exp", "Neg", "Sigmoid", "Tanh")


def chain(count: int, at: int, *middle: str) -> str:
    """``count`` nodes one after another, ``middle`` among them from ``at`` on; some look back."""
    lines = []
    for i in range(count):
        if at <= i < at + len(middle):
            lines.append(f"h{i + 1} = {middle[i - at]}(h{i})")
        elif i % 7 == 3:
            lines.append(f"h{i + 1} = MatMul(h{i}, w)")
        elif i % 7 == 5:
            lines.append(f"h{i + 1} = Add(h{i}, h{max(i - 5, 0)})")
        else:
            lines.append(f"h{i + 1} = {PLAIN[i % 5]}(h{i})")
    body = " ".join(lines)
    return f"{HEADER}g (float[B,4] h0) => (float[B,4] h{count}) {WEIGHTS} {{ {body} }}"
