"""``artifact.tree``: the path, its costs, and a picture."""

from __future__ import annotations

import numpy as np
import opt_einsum
import pytest

import smelt

CHAIN, SIZES = "ab,bc,cd->ad", [(2, 3), (3, 4), (4, 5)]


def test_costs_are_those_of_opt_einsum() -> None:
    for equation, shapes in ((CHAIN, SIZES), ("abx,bcx,cd->xad", [(2, 3, 4), (3, 5, 4), (5, 6)])):
        tree = smelt.compile_einsum(equation, shapes).tree
        info = opt_einsum.contract_path(equation, *shapes, shapes=True, optimize=tree.path)[1]
        assert tree.flops == info.opt_cost
        assert tree.largest_array == max(info.largest_intermediate, *map(np.prod, shapes))


def test_slices_are_in_the_tree() -> None:
    tree = smelt.compile_einsum("abcd,cdef,efab->", [(6,) * 4] * 3, memory_limit=40).tree
    assert tree.largest_intermediate <= 40
    assert tree.count == np.prod(list(tree.slices.values())) > 1
    assert f"slices: {tree.count}" in str(tree)


def test_the_tree_is_drawn() -> None:
    artifact = smelt.compile_einsum(CHAIN, SIZES)
    html = artifact._repr_html_()
    assert html.count("<svg") == 2  # the model, and the tree
    assert artifact.tree.svg().count("<rect") == 5
    many = ",".join(opt_einsum.get_symbol(i) for i in range(101))
    assert "<svg" not in smelt.compile_einsum(f"{many}->", [(2,)] * 101).tree._repr_html_()


def test_one_operand_has_no_products() -> None:
    tree = smelt.compile_einsum("ab->a", [(2, 3)]).tree
    assert (tree.flops, tree.largest_intermediate, tree.count) == (0, 0, 1)


def test_memory_is_planned_and_measured() -> None:
    shapes = [(700, 700)] * 3
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    artifact = smelt.compile_einsum("ab,bc,cd->ad", shapes, engine="native")
    measured = artifact.measured_memory(*arrays)
    planned = artifact.report["arena_bytes"]
    assert planned >= 4 * artifact.tree.largest_intermediate
    if measured is None:
        pytest.skip("this system does not tell the memory of a process")
    assert measured <= 1.5 * (planned + 4 * 700 * 700)
