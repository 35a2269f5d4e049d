"""The layout of pictures: boxes stand below what leads to them and never overlap."""

import random

import pytest

from smelt.ir.html.layered import layered


def overlaps(layout, sizes):
    rects = [
        (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
        for (x, y), (w, h) in zip(layout.centers, sizes, strict=True)
    ]
    return [
        (i, j)
        for i, a in enumerate(rects)
        for j, b in enumerate(rects[:i])
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]


def test_nothing_and_one_box():
    assert layered([], []).height == 0
    one = layered([(40, 20)], [])
    assert (one.centers, one.width, one.height) == (((20, 10),), 40, 20)


def test_a_chain_is_straight():
    layout = layered([(40, 20)] * 4, [(0, 1), (1, 2), (2, 3)])
    assert len({x for x, _ in layout.centers}) == 1


def test_a_line_that_passes_a_row_goes_around_its_boxes():
    layout = layered([(40, 20)] * 3, [(0, 1), (1, 2), (0, 2)])
    (x, y), (left, right) = (
        layout.centers[1],
        (layout.centers[1][0] - 20, layout.centers[1][0] + 20),
    )
    waypoint = layout.lines[2][1]
    assert waypoint[1] == y
    assert not left < waypoint[0] < right, x


@pytest.mark.parametrize("seed", range(20))
def test_any_graph_has_boxes_apart_below_their_sources_and_within_the_picture(seed):
    draw = random.Random(seed)
    count = draw.randrange(2, 40)
    sizes = [(draw.randrange(20, 200), 22) for _ in range(count)]
    edges = [(a, b) for b in range(count) for a in range(b) if draw.random() < 0.15]
    layout = layered(sizes, edges)
    assert overlaps(layout, sizes) == []
    for a, b in edges:
        assert layout.centers[a][1] < layout.centers[b][1]
    for (x, y), (w, h) in zip(layout.centers, sizes, strict=True):
        assert -1e-6 <= x - w / 2 <= x + w / 2 <= layout.width + 1e-6
        assert -1e-6 <= y - h / 2 <= y + h / 2 <= layout.height + 1e-6
