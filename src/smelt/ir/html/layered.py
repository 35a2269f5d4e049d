"""A layered layout of an acyclic graph: coordinates of boxes and lines.

The row of a box is its longest distance from a source. Lines that cross rows get a waypoint in
each, so that they go around boxes. Rows are ordered by the mean position of their neighbors above
and below, alternately; boxes then move towards those neighbors as far as their row allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

GAP, ROW_GAP = 14.0, 28.0
"""Pixels between boxes of a row, and between rows."""

SWEEPS = 8
"""How often rows are sorted, and later placed, by their neighbors: in turn down and up."""

Point = tuple[float, float]
Edge = tuple[int, int]


@dataclass(frozen=True)
class Layout:
    """Coordinates in pixels: the center of each box, and the points of each line.

    A line goes from the bottom of its first box to the top of its second.
    """

    centers: tuple[Point, ...]
    lines: tuple[tuple[Point, ...], ...]
    width: float
    height: float


def layered(sizes: Sequence[Point], edges: Sequence[Edge]) -> Layout:
    """Return the layout of boxes of ``sizes`` (width, height) and ``edges`` given by box indices.

    Each edge goes from a smaller index to a larger one, so the graph has no cycle. Takes quadratic
    time at worst: it is for pictures that people look at.
    """
    rows = _box_rows(len(sizes), edges)
    widths = [width for width, _ in sizes]
    items_of_edges, neighbors = _waypoints(rows, edges, widths)
    grid = _grid(rows)
    _order(grid, neighbors)
    x_of = _x_positions(grid, neighbors, widths)
    heights = [
        max((sizes[item][1] for item in row if item < len(sizes)), default=0.0) for row in grid
    ]
    y_of_rows = [sum(heights[:row]) + ROW_GAP * row for row in range(len(grid))]
    middles = [top + height / 2 for top, height in zip(y_of_rows, heights, strict=True)]
    centers = tuple((x_of[item], middles[rows[item]]) for item in range(len(sizes)))
    lines = []
    for items in items_of_edges:
        first, last = items[0], items[-1]
        inner = [(x_of[item], middles[rows[item]]) for item in items[1:-1]]
        start = (x_of[first], centers[first][1] + sizes[first][1] / 2)
        end = (x_of[last], centers[last][1] - sizes[last][1] / 2)
        lines.append((start, *inner, end))
    width = max((x_of[item] + widths[item] / 2 for item in range(len(widths))), default=0.0)
    height = y_of_rows[-1] + heights[-1] if grid else 0.0
    return Layout(centers, tuple(lines), width, height)


def _box_rows(count: int, edges: Sequence[Edge]) -> list[int]:
    """Return the row of each box: one more than the largest row of its predecessors."""
    rows = [0] * count
    for first, second in sorted(edges, key=lambda edge: edge[1]):
        rows[second] = max(rows[second], rows[first] + 1)
    return rows


def _waypoints(
    rows: list[int], edges: Sequence[Edge], widths: list[float]
) -> tuple[list[list[int]], list[tuple[list[int], list[int]]]]:
    """Return the chain of items of each edge, and the neighbors above and below of each item.

    Appends the waypoints to ``rows`` and, as items of width 0, to ``widths``.
    """
    chains = []
    for first, second in edges:
        chain = [first]
        for row in range(rows[first] + 1, rows[second]):
            chain.append(len(rows))
            rows.append(row)
            widths.append(0.0)
        chains.append([*chain, second])
    neighbors: list[tuple[list[int], list[int]]] = [([], []) for _ in rows]
    for chain in chains:
        for above, below in pairwise(chain):
            neighbors[above][1].append(below)
            neighbors[below][0].append(above)
    return chains, neighbors


def _grid(rows: Sequence[int]) -> list[list[int]]:
    """Return the items of each row: ``rows`` [0, 1, 0] give [[0, 2], [1]]."""
    grid: list[list[int]] = [[] for _ in range(max(rows, default=-1) + 1)]
    for item, row in enumerate(rows):
        grid[row].append(item)
    return grid


def _order(grid: list[list[int]], neighbors: Sequence[tuple[list[int], list[int]]]) -> None:
    """Sort each row by the mean position of its neighbors, in sweeps down and up.

    A sweep down looks at the neighbors above (``neighbors[item][0]``), a sweep up at those below.
    """
    position = {item: float(index) for row in grid for index, item in enumerate(row)}
    for sweep in range(SWEEPS):
        direction = sweep % 2
        rows = grid if direction == 0 else grid[::-1]
        for row in rows:
            means = {
                item: _mean(
                    [position[other] for other in neighbors[item][direction]], position[item]
                )
                for item in row
            }
            row.sort(key=means.__getitem__)
            position.update((item, float(index)) for index, item in enumerate(row))


def _x_positions(
    grid: Sequence[Sequence[int]],
    neighbors: Sequence[tuple[list[int], list[int]]],
    widths: Sequence[float],
) -> list[float]:
    """Return the x of the center of each item; the leftmost box begins at 0."""
    xs = [0.0] * len(widths)
    for row in grid:
        _spread_row(row, dict.fromkeys(row, 0.0), widths, xs)
    for sweep in range(SWEEPS):
        rows = grid if sweep % 2 == 0 else grid[::-1]
        for row in rows:
            goals = {
                item: _mean([xs[other] for side in neighbors[item] for other in side], xs[item])
                for item in row
            }
            _spread_row(row, goals, widths, xs)
    left = min((x - width / 2 for x, width in zip(xs, widths, strict=True)), default=0.0)
    return [x - left for x in xs]


def _spread_row(
    row: Sequence[int], goals: dict[int, float], widths: Sequence[float], xs: list[float]
) -> None:
    """Set ``xs`` of the items of ``row`` close to ``goals``, in order and without overlap.

    One pass pushes overlapping items right, one pass pushes them left; the mean of both has no
    overlap.
    """
    right, left = [], []
    edge = float("-inf")
    for item in row:
        x = max(goals[item], edge + widths[item] / 2)
        right.append(x)
        edge = x + widths[item] / 2 + GAP
    edge = float("inf")
    for item in reversed(row):
        x = min(goals[item], edge - widths[item] / 2)
        left.append(x)
        edge = x - widths[item] / 2 - GAP
    for item, from_left, from_right in zip(row, right, reversed(left), strict=True):
        xs[item] = (from_left + from_right) / 2


def _mean(places: Sequence[float], otherwise: float) -> float:
    """Return the mean of ``places``, or ``otherwise`` if there are none."""
    return sum(places) / len(places) if places else otherwise
