"""Choose the group of each node after the passes among the groups of the source's tree.

Both sides of the page then have the same groups, such as ``layer.3`` beside ``layer.3``. A group is
known by its path: the names of the groups around it, outermost first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import onnx_ir as ir

from smelt.check.report.modules import Path, Tree, path_of


class Places:
    """The groups of a source model.

    ``tree`` is the tree of its data; ``paths`` are the modules of each node, by number, that
    ``path_of`` returns.
    """

    def __init__(self, tree: Sequence[Tree], paths: Sequence[Path]) -> None:
        """Note the group of each node of ``tree`` by number, and the first group of each module
        path.
        """
        self._groups: dict[int, Path] = dict(_nodes_with_paths(tree, ()))
        self._by_module: dict[Path, Path] = {}
        for number, group in self._groups.items():
            self._by_module.setdefault(paths[number], group)

    def assign(self, sources: Mapping[ir.Node, Sequence[int]]) -> dict[ir.Node, Path]:
        """Return the group of each node, given the numbers of its source nodes.

        A node without sources gets the group of nodes of the same module, else the group that at
        least half of its readers share.
        """
        group_of = {}
        for node, numbers in sources.items():
            group = self._of_sources(numbers)
            if group is None:
                group = self._by_module.get(path_of(node)) if path_of(node) else None
            if group is not None:
                group_of[node] = group
        for node in reversed(list(sources)):
            if node not in group_of:
                group_of[node] = _shared(group_of[r] for r in _readers(node) if r in group_of)
        return group_of

    def _of_sources(self, numbers: Sequence[int]) -> Path | None:
        """Return the innermost group that holds at least half of the nodes; None if no node is
        known.
        """
        groups = [self._groups[number] for number in numbers if number in self._groups]
        return _shared(groups) if groups else None


def _shared(paths: Iterable[Path]) -> Path:
    """Return the longest path that is a prefix of at least half of ``paths``."""
    matching = every = list(paths)
    if len(every) == 1:
        return every[0]
    path: Path = ()
    while True:
        names = Counter(longer[len(path)] for longer in matching if len(longer) > len(path))
        name = max(names, key=names.__getitem__, default="")
        if not names or 2 * names[name] < len(every):
            return path
        path = (*path, name)
        matching = [longer for longer in matching if longer[: len(path)] == path]


def _readers(node: ir.Node) -> Iterator[ir.Node]:
    """Yield the nodes of the same graph that read a result of ``node``."""
    for value in node.outputs:
        for reader in value.consumers():
            if reader.graph is node.graph:
                yield reader


def _nodes_with_paths(trees: Sequence[Tree], path: Path) -> Iterator[tuple[int, Path]]:
    """Yield the number of each node with the path of its group; inner graphs start at an empty
    path.
    """
    for tree in trees:
        if isinstance(tree, int):
            yield tree, path
        elif "node" in tree:
            yield tree["node"], path
            yield from _nodes_with_paths(tree["kids"], ())
        else:
            yield from _nodes_with_paths(
                tree["kids"], () if "body" in tree else (*path, tree["name"])
            )
