"""Draw one part of a model before and after as one self-contained SVG."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from smelt.check.report.kinds import COLOURS, summary_of
from smelt.check.report.layer import Part, part_of
from smelt.ir.html.layered import Edge, Point, layered
from smelt.ir.html.markup import escaped

HEAD, LINE, MARGIN, GAP, TOP = 21.0, 15.0, 28.0, 48.0, 92.0
"""Pixels: title bar of a node, a line below it, around the picture, between sides, above them."""

TITLE_LETTER, LETTER, LABEL = 7.5, 7.0, 34
"""Pixels of a letter of a title and of a line, and the longest label in characters."""

INK, FAINT, EDGE, PAPER, PANEL = "#1b2330", "#667085", "#a9b3c1", "#ffffff", "#f4f5f7"
"""Colours of text, secondary text, edges, the background, and the panel of one side."""

FRAMES = {
    None: ("#ffffff", "#a9b3c1", 1.0, "kept"),
    "new": ("#dff5e4", "#2e9a4b", 2.0, "made"),
    "changed": ("#fff1d3", "#d08a00", 2.0, "rewritten"),
    "gone": ("#fde4e1", "#d1493b", 1.4, "removed"),
}
"""State of a node to fill, stroke, width of the stroke, and its word in the legend."""


@dataclass(frozen=True)
class Box:
    """The box of a node; with ``kind`` None, of a value that enters or leaves the drawn part."""

    title: str
    lines: tuple[str, ...] = ()
    kind: str | None = None
    state: str | None = None

    @property
    def size(self) -> Point:
        """Width and height in pixels."""
        widths = [len(line) * LETTER for line in self.lines]
        width = max([len(self.title) * TITLE_LETTER, *widths]) + 22
        return max(width, 64.0), HEAD + (len(self.lines) * LINE + 5 if self.lines else 2)


def picture_of(document: dict[str, Any]) -> str:
    """Return the SVG of one part of ``document``, the data of a report, on both sides.

    It has no scripts, links, ids or fonts of its own.
    """
    part = part_of(document["before"], document["after"])
    sides = []
    for key, numbers in (("before", part.before), ("after", part.after)):
        boxes, edges = _boxes(document[key], numbers)
        sides.append((boxes, layered([box.size for box in boxes], edges)))
    widths = [max(layout.width, 220.0) for _, layout in sides]
    width = sum(widths) + GAP * 2 + MARGIN * 2
    height = TOP + max(layout.height for _, layout in sides) + GAP + 54
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-size="12" '
        'font-family="system-ui, -apple-system, Segoe UI, Roboto, DejaVu Sans, sans-serif">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="{PAPER}"/>',
        *_heading(document, part),
    ]
    left = MARGIN
    for name, panel, (boxes, layout) in zip(document["sides"], widths, sides, strict=True):
        lines += _panel(name, boxes, left, panel + GAP / 2 + 12, height)
        start = left + GAP / 4 + 6 + (panel - layout.width) / 2
        lines.append(f'<g transform="translate({start:.1f} {TOP + 12:.1f})">')
        lines += [_curve(points) for points in layout.lines]
        for box, center in zip(boxes, layout.centers, strict=True):
            lines += _box_elements(box, center)
        lines.append("</g>")
        left += panel + GAP / 2 + 12 + 12
    return "\n".join([*lines, *_legend(sides[0][0] + sides[1][0], width, height), "</svg>\n"])


def _boxes(graph: dict[str, Any], numbers: Sequence[int]) -> tuple[list[Box], list[Edge]]:
    """Return the boxes and the edges of the drawn part, whose nodes have these ``numbers``.

    There is a box for each value that enters, for each node, and for each value that leaves, in
    that order. An edge is a pair of indices of boxes. Constants have no box.
    """
    produced = {value: n for n in numbers for value in graph["nodes"][n]["out"]}
    folded = {v for node in graph["nodes"] if node.get("constant") for v in node["out"]}
    constants = {int(value) for value in graph["weights"]} | folded
    values_read = dict.fromkeys(v for n in numbers for v in graph["nodes"][n]["in"] if v >= 0)
    entering = [value for value in values_read if value not in produced and value not in constants]
    inside = set(numbers)
    outer = {
        v for n, node in enumerate(graph["nodes"]) if n not in inside for v in node["in"]
    } | set(graph["outputs"])
    leaving = [value for value in produced if value in outer]
    boxes = [_port(graph, value) for value in entering]
    boxes += [_node(graph, number) for number in numbers]
    boxes += [_port(graph, value) for value in leaving]
    box_of = {value: index for index, value in enumerate(entering)}
    edges: dict[Edge, None] = {}
    for index, number in enumerate(numbers, len(entering)):
        for value in graph["nodes"][number]["in"]:
            if value in box_of:
                edges[box_of[value], index] = None
        box_of |= dict.fromkeys(graph["nodes"][number]["out"], index)
    for index, value in enumerate(leaving, len(entering) + len(numbers)):
        edges[box_of[value], index] = None
    return boxes, list(edges)


def _port(graph: dict[str, Any], value: int) -> Box:
    """Return the box of a value that enters or leaves the part: its type."""
    return Box(graph["values"][value][1][:LABEL])


def _node(graph: dict[str, Any], number: int) -> Box:
    """Return the box of a node: its operator, and its first line of weights or attributes."""
    node = graph["nodes"][number]
    lines = tuple(line[: LABEL + 2] for line in node["lines"][:1])
    return Box(node["op"][:LABEL], lines, node["kind"], node.get("state"))


def _heading(document: dict[str, Any], part: Part) -> Iterator[str]:
    """Yield the title of the model and what the picture shows of it."""
    nodes = document["before"]["nodes"]
    where = str(document["title"])
    totals = [f"{len(document[side]['nodes']):,}" for side in ("before", "after")]
    counts = f"{totals[0]} nodes became {totals[1]}"
    if part.path:
        name = "/".join(part.path)
        if re.fullmatch(r"((block|part) \d+ of )?\d+", part.path[-1]):
            name = f"{summary_of(Counter(nodes[n]['op'] for n in part.before))}, {name}"
        where = f"{name} of {where}"
        counts = f"{part.counts[0]} nodes became {part.counts[1]}; in the whole model, {counts}"
    yield _text(MARGIN, 34, "smelt", size=19, colour="#b4480f", bold=True)
    yield _text(MARGIN + 66, 34, where[:90], size=16, bold=True)
    yield _text(MARGIN, 56, counts, colour=FAINT, size=13)


def _panel(
    name: str, boxes: Sequence[Box], left: float, width: float, height: float
) -> Iterator[str]:
    """Yield the background and the title of one side."""
    count = sum(box.kind is not None for box in boxes)
    yield (
        f'<rect x="{left:.1f}" y="{TOP - 26:.1f}" width="{width:.1f}" '
        f'height="{height - TOP - 38:.1f}" rx="10" fill="{PANEL}"/>'
    )
    title = f"{name}: {count} node{'' if count == 1 else 's'}"
    yield _text(left + 14, TOP - 8, title, bold=True, size=13)


def _box_elements(box: Box, center: Point) -> Iterator[str]:
    """Yield the SVG elements of ``box``, whose center is ``center``."""
    (middle, y), (width, height) = center, box.size
    x, top = middle - width / 2, y - height / 2
    if box.kind is None:
        yield _rect(x, top, width, height, INK, INK, 0, radius=height / 2)
        yield _text(middle, y + 4, box.title, colour=PAPER, anchor="middle")
        return
    fill, stroke, thick, _ = FRAMES[box.state]
    dash = ' stroke-dasharray="5 3"' if box.state == "gone" else ""
    yield _rect(x, top, width, height, fill, stroke, thick, extra=dash)
    head_height = HEAD if box.lines else height
    colour = COLOURS[box.kind]
    bottom = "" if box.lines else 'rx="4" '
    yield (
        f'<rect x="{x + 1:.1f}" y="{top + 1:.1f}" width="{width - 2:.1f}" {bottom}'
        f'height="{head_height - 2:.1f}" fill="{colour}" opacity="{0.7 if dash else 1}"/>'
    )
    yield _text(middle, top + 15, box.title, colour=PAPER, anchor="middle", bold=True)
    for index, line in enumerate(box.lines):
        yield _text(middle, top + HEAD + 13 + LINE * index, line, anchor="middle", size=11.5)


def _legend(boxes: Sequence[Box], width: float, height: float) -> Iterator[str]:
    """Yield a sample of each frame and of each kind that the picture has, on up to two lines."""
    states = {box.state for box in boxes if box.kind is not None}
    kinds = sorted({box.kind for box in boxes if box.kind is not None})
    keys = [(FRAMES[state], state == "gone") for state in FRAMES if state in states]
    keys += [((COLOURS[kind], COLOURS[kind], 0.0, kind), False) for kind in kinds]
    left, y = MARGIN, height - 46
    for (fill, stroke, thick, word), is_dashed in keys:
        if left + 30 + len(word) * LETTER > width - MARGIN:
            left = MARGIN
            y += 20
        dash = ' stroke-dasharray="5 3"' if is_dashed else ""
        yield _rect(left, y, 18, 12, fill, stroke, thick, extra=dash)
        yield _text(left + 24, y + 10, word, colour=FAINT)
        left += 42 + len(word) * LETTER


def _rect(
    x: float,
    y: float,
    width: float,
    height: float,
    fill: str,
    stroke: str,
    thick: float,
    radius: float = 4,
    extra: str = "",
) -> str:
    """Return an SVG rectangle whose top left corner is at ``x``, ``y``."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{radius:.1f}" fill="{fill}" stroke="{stroke}" stroke-width="{thick}"{extra}/>'
    )


def _text(
    x: float,
    y: float,
    text: str,
    colour: str = INK,
    size: float = 12,
    anchor: str = "start",
    bold: bool = False,
) -> str:
    """Return an SVG text, escaped, with its ``anchor`` at ``x`` on the baseline ``y``."""
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" '
        f'text-anchor="{anchor}"{weight}>{escaped(text)}</text>'
    )


def _curve(points: Sequence[Point]) -> str:
    """Return the SVG of a smooth line through ``points``, which go down."""
    path = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        path.append(f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}")
    return f'<path d="{"".join(path)}" fill="none" stroke="{EDGE}" stroke-width="1.3"/>'
