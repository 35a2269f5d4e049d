"""Find the group of each node of a result in the tree of its source, so that both sides fold alike.

A group is known by its path: the names of the groups around it, outermost first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import onnx_ir as ir

from smelt.check.report.modules import Path, Tree, path_of


class Places:
    """The groups of a source model.

    ``tree`` is the tree of its data, ``paths`` the modules that ``path_of`` reads from the names
    of its nodes, by number.
    """

    def __init__(self, tree: Sequence[Tree], paths: Sequence[Path]) -> None:
        self._groups: dict[int, Path] = dict(_walk(tree, ()))
        self._by_module: dict[Path, Path] = {}
        for number, group in self._groups.items():
            self._by_module.setdefault(paths[number], group)

    def assign(self, sources: Mapping[ir.Node, Sequence[int]]) -> dict[ir.Node, Path]:
        """Return the group of each node, given the numbers of its source nodes.

        A node without sources gets the group of nodes of the same module, else of its neighbors.
        """
        found = {}
        for node, numbers in sources.items():
            group = self._of_sources(numbers)
            if group is None:
                group = self._by_module.get(path_of(node)) if path_of(node) else None
            if group is not None:
                found[node] = group
        for node in reversed(list(sources)):
            if node not in found:
                found[node] = _shared(found[r] for r in _readers(node) if r in found)
        return found

    def _of_sources(self, numbers: Sequence[int]) -> Path | None:
        """Return the innermost group that holds at least half of the nodes; None without nodes."""
        known = [self._groups[number] for number in numbers if number in self._groups]
        return _shared(known) if known else None


def _shared(paths: Iterable[Path]) -> Path:
    """Return the longest path that at least half of ``paths`` begin with."""
    left = every = list(paths)
    if len(every) == 1:
        return every[0]
    path: Path = ()
    while True:
        names = Counter(each[len(path)] for each in left if len(each) > len(path))
        most = max(names, key=names.__getitem__, default="")
        if not names or 2 * names[most] < len(every):
            return path
        path = (*path, most)
        left = [each for each in left if each[: len(path)] == path]


def _readers(node: ir.Node) -> Iterator[ir.Node]:
    """Yield the nodes of the same graph that read a result of ``node``."""
    for value in node.outputs:
        for reader in value.consumers():
            if reader.graph is node.graph:
                yield reader


def _walk(trees: Sequence[Tree], path: Path) -> Iterator[tuple[int, Path]]:
    """Yield the number of each node with its group; a path begins anew in each inner graph."""
    for tree in trees:
        if isinstance(tree, int):
            yield tree, path
        elif "node" in tree:
            yield tree["node"], path
            yield from _walk(tree["kids"], ())
        else:
            yield from _walk(tree["kids"], () if "body" in tree else (*path, tree["name"]))
