"""A graph as SVG: a box for each node, input and output, a line from each producer to each
consumer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.html.layered import Edge, Point, layered
from smelt.ir.html.markup import escaped
from smelt.ir.text import operator, type_of

LETTER, HEIGHT, PADDING, MARGIN = 7.0, 22.0, 9.0, 4.0
"""Pixels: the width of a letter, the height of a box, around its text, around the picture."""

LABEL = 32
"""Maximum number of characters of a label."""

PORT, NODE, CARRIER = "#fff2cc", "#dbe9fb", "#e6dbfb"
"""Colors of inputs and outputs, of nodes, and of nodes that carry graphs."""


@dataclass(frozen=True)
class Box:
    """A box: its label, its tooltip (``title``) and its color."""

    label: str
    title: str
    color: str

    @property
    def size(self) -> Point:
        """Return width and height in pixels."""
        letters = min(len(self.label), LABEL)
        return max(letters * LETTER, 24.0) + 2 * PADDING, HEIGHT


def picture(graph: ir.Graph) -> str:
    """Return ``graph`` as one SVG element without ids or scripts.

    Constants are not drawn; the tooltip of a node names them. A line to a node that stands before
    its producer, which ONNX forbids, is not drawn either.
    """
    return drawing(*_boxes(graph))


def drawing(boxes: Sequence[Box], edges: Sequence[Edge]) -> str:
    """Return ``boxes`` and ``edges`` between them, by index, as one SVG element."""
    layout = layered([box.size for box in boxes], edges)
    width, height = layout.width + 2 * MARGIN, layout.height + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-MARGIN} {-MARGIN} {width:.1f} {height:.1f}" role="img" '
        'style="max-width:100%;height:auto" font-family="monospace" font-size="11">'
    ]
    parts += [_line_svg(points) for points in layout.lines]
    parts += [_box_svg(box, center) for box, center in zip(boxes, layout.centers, strict=True)]
    return "\n".join([*parts, "</svg>"])


def _boxes(graph: ir.Graph) -> tuple[list[Box], list[Edge]]:
    """Return the boxes of inputs, nodes and outputs, and the edges between them by index."""
    boxes: list[Box] = []
    home: dict[ir.Value, int] = {}
    edges: dict[Edge, None] = {}
    for value in graph.inputs:
        home[value] = len(boxes)
        boxes.append(Box(f"{value.name or ''} {type_of(value)}", "input", PORT))
    for node in graph:
        number = len(boxes)
        reads = [*node.inputs, *(scope.captures(node) if scope.carries_graphs(node) else ())]
        edges |= {(home[value], number): None for value in reads if value in home}
        home |= dict.fromkeys(node.outputs, number)
        color = CARRIER if scope.carries_graphs(node) else NODE
        boxes.append(Box(operator(node), _tooltip(node), color))
    for value in graph.outputs:
        if value in home:
            edges[home[value], len(boxes)] = None
        boxes.append(Box(f"{value.name or ''} {type_of(value)}", "output", PORT))
    return boxes, list(edges)


def _tooltip(node: ir.Node) -> str:
    """Return the tooltip of ``node``: its name, and its inputs and outputs with types."""

    def values(items: tuple[ir.Value | None, ...] | list[ir.Value | None]) -> str:
        """Return ``items`` as text: each name with its type, ``-`` for an absent one."""
        return ", ".join("-" if v is None else f"{v.name} {type_of(v)}" for v in items)

    return f"{node.name}: {values(list(node.inputs))} -> {values(list(node.outputs))}"


def _box_svg(box: Box, center: Point) -> str:
    """Return the SVG of ``box`` centered at ``center``."""
    (x, y), (width, height) = center, box.size
    return (
        f"<g><title>{escaped(box.title, 400)}</title>"
        f'<rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="4" fill="{box.color}" stroke="#777"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="#111">'
        f"{escaped(box.label, LABEL)}</text></g>"
    )


def _line_svg(points: tuple[Point, ...]) -> str:
    """Return the SVG of a smooth line through ``points``, which go down, with an arrow head."""
    (x, y), (end_x, end_y) = points[0], points[-1]
    path = [f"M{x:.1f} {y:.1f}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        path.append(f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}")
    head = (
        f"M{end_x - 3:.1f} {end_y - 5:.1f}L{end_x:.1f} {end_y:.1f}L{end_x + 3:.1f} {end_y - 5:.1f}"
    )
    return f'<path d="{"".join(path)}{head}" fill="none" stroke="#888"/>'
