"""Reports of small models for the tests of the page, and what the page shows of them."""

from __future__ import annotations

import onnx_ir as ir
from browser import Browser

import smelt
from smelt.ir.text import parse


def optimized(model: str | ir.Model) -> smelt.HtmlReport:
    report = smelt.HtmlReport("a model")
    smelt.optimize(parse(model) if isinstance(model, str) else model, observers=[report])
    return report


def layers(count: int) -> str:
    """A chain of ``count`` blocks of 10 nodes."""
    block = ["MatMul", "Add", "Relu", "Neg", "Abs", "Sqrt", "Exp", "Tanh", "Erf", "Sin"]
    lines, last = [], "x"
    for index in range(count * len(block)):
        op = block[index % len(block)]
        operands = f"{last}, w" if op in ("MatMul", "Add") else last
        last = f"v{index}"
        lines.append(f"{last} = {op}({operands})")
    body = "\n".join(lines)
    weights = ",".join(str(i) for i in range(16))
    return f"g (float[4,4] x) => (float[4,4] {last}) <float[4,4] w = {{{weights}}}> {{ {body} }}"


def modules(count: int) -> ir.Model:
    """A chain of ``count`` modules of 10 nodes, one of which does nothing."""
    model = parse(layers(count))
    for index, node in enumerate(model.graph):
        node.name = f"/layer.{index // 10}/{node.op_type}"
        if node.op_type == "Neg":
            node.op_type = "Identity"
    return model


def texts(browser: Browser, selector: str) -> list[str]:
    return browser.ask(f"[...document.querySelectorAll('{selector}')].map(e => e.textContent)")
