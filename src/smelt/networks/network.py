"""The artifact of a tensor network: it also knows its equation, its path and its slices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from smelt.errors import UsageError
from smelt.ir.same_shape import Dim
from smelt.networks.arguments import check_function, count_of, file_of
from smelt.networks.checkpoints import key_of
from smelt.networks.differentiable import Differentiable
from smelt.networks.expansion import Expansion, Summand
from smelt.networks.memory import peak_bytes
from smelt.networks.slices import Progress, operands_of, parts_of, sum_slices
from smelt.networks.thread_use import ThreadUse
from smelt.networks.tree import Tree, tree_of
from smelt.operators.contraction import Equation, counts_of
from smelt.operators.contraction_slices import Slices
from smelt.operators.semiring import SEMIRINGS, Semiring
from smelt.runtime.jit.pool import MOST_THREADS
from smelt.targets.base import Artifact
from smelt.targets.host.options import default_engine


@dataclass(frozen=True)
class Network:
    """What a contraction was compiled from.

    ``sizes`` has the size of each label of ``equation``; ``constants`` the arrays of operands that
    calls leave out, by number; ``options`` are those of the target. ``limit`` is the most elements
    of an intermediate result, or None.
    """

    equation: Equation
    sizes: Mapping[str, Dim]
    slices: Slices
    dtype: np.dtype
    semiring: Semiring
    constants: tuple[tuple[int, np.ndarray], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: int | None = None

    @property
    def sliced(self) -> dict[str, int]:
        """The sliced labels with their sizes, summed ones first."""
        out = self.equation.out
        labels = sorted(self.slices.labels, key=lambda label: label in out)
        return {label: int(str(self.sizes[label])) for label in labels}


@dataclass(eq=False)
class Contraction(Differentiable):
    """An artifact of ``smelt.compile_einsum``; call it with one array per operand."""

    network: Network = field(kw_only=True)
    _of_slice: dict[int | None, Artifact] = field(default_factory=dict, repr=False)
    _thread_uses: dict[int, ThreadUse] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, artifact: Artifact, network: Network) -> Contraction:
        """Return ``artifact`` as the contraction of ``network``."""
        given = {each.name: getattr(artifact, each.name) for each in fields(artifact)}
        return cls(**given, network=network)

    @cached_property
    def expansion(self) -> Expansion:
        """The result as one contraction, whose derivatives keep the path and the limit."""
        network = self.network
        equation = network.equation
        numbers = tuple(range(len(equation.terms)))
        shapes = [[network.sizes[label] for label in term] for term in equation.terms]
        is_plain = network.semiring == SEMIRINGS["sum_product"]
        semiring = "sum_product" if is_plain else network.semiring
        options = self.options_of_einsum(network.slices.path, network.limit)
        summand = Summand(str(equation), numbers)
        fixed = dict(network.constants)
        return Expansion(((summand,),), shapes, network.dtype, semiring, fixed, options)

    @property
    def tree(self) -> Tree:
        """The path with the costs of its products, and the slices."""
        network, slices = self.network, self.network.slices
        counts = counts_of(network.sizes)
        return tree_of(slices.equation, network.equation, slices.path, counts, network.sliced)

    @property
    def slices(self) -> range:
        """The numbers of the slices; ``range(1)`` if nothing is sliced."""
        return range(prod(self.network.sliced.values()))

    def run_slice(self, arrays: Sequence[Any], number: int) -> np.ndarray:
        """Return the result of slice ``number`` of the contraction of ``arrays``.

        It has the dims of the result that are not sliced. Slices are independent of each other, and
        compiled once, without the background: their bits do not change between calls. Raises
        UsageError E671 for arrays that do not fit, E658 for a number of no slice.
        """
        if number not in self.slices:
            raise UsageError(
                "E658",
                f"there is no slice {number!r}",
                why=f"the contraction has {len(self.slices)} slices, numbered from 0 on",
                fix="use the numbers in artifact.slices",
            )
        return self.run_checked(operands_of(self.network, arrays), number)

    def sum_slices(
        self,
        arrays: Sequence[Any],
        *,
        progress: Progress | None = None,
        threads: int = 1,
        checkpoint: str | Path | None = None,
    ) -> np.ndarray:
        """Return the contraction of ``arrays``, slice by slice.

        Slices are added pairwise in a fixed order, so rounding adds at most ``ceil(log2 n)`` ulp of
        the sum of the absolute values of n slices; a call of the artifact adds them one after the
        other. ``progress`` receives the number of slices done, and of all. ``threads`` threads go
        over slices, or within the products of one: if the slices take some seconds, both ways are
        measured, and ``report["slice_threads"]`` says which is kept. The bits do not depend on
        that. ``checkpoint`` is a file that keeps the state, at most every 30 s: a second call with
        it goes on where the first one ended. It is deleted at the end. Raises UsageError E671 for
        arrays that do not fit, E698 for a file of another contraction, E699 for another wrong
        argument.
        """
        threads, path = count_of("threads", threads, 1), file_of("checkpoint", checkpoint)
        check_function("progress", progress)
        operands = operands_of(self.network, arrays)
        key = "" if path is None else key_of(self.network, operands)
        results = self._results_by_threads(operands, threads)
        return sum_slices(self.network, results, progress=progress, checkpoint=path, key=key)

    def _results_by_threads(
        self, operands: Sequence[np.ndarray], threads: int
    ) -> Callable[[range], Iterator[np.ndarray]]:
        """Return the function that computes slices on ``threads`` threads, by number."""
        one = None if threads == 1 else 1
        self._slice_program(one).ready(None)
        run = partial(self.run_checked, operands, threads=one)
        use = self._thread_uses.setdefault(threads, ThreadUse(threads))
        self.report["slice_threads"] = use.report
        if self.network.options.get("engine", default_engine()) == "numpy":
            return partial(use.results, run, None)

        def within() -> Callable[[int], np.ndarray]:
            """Return the function that computes a slice with all threads in its products."""
            most = min(threads, MOST_THREADS)
            self._slice_program(most).ready(None)
            return partial(self.run_checked, operands, threads=most)

        return partial(use.results, run, within)

    def measured_memory(self, *arrays: Any) -> int | None:
        """Return by how many bytes a call grows this process at most; None if unknown here.

        ``report["arena_bytes"]`` has the planned bytes of intermediate results, once the program
        is compiled. The first call, which compiles, is not measured.
        """
        self(*arrays)
        self.ready(None)
        return peak_bytes(lambda: self(*arrays))

    def _slice_program(self, threads: int | None = None) -> Artifact:
        """Return the artifact of one slice, compiled at the first use.

        Its products run on ``threads`` threads, by default on those of the options of the target.
        """
        if threads not in self._of_slice:
            from smelt.networks.compile import artifact_of_slice

            self._of_slice[threads] = artifact_of_slice(self.network, self.target, threads)
        return self._of_slice[threads]

    def run_checked(
        self, operands: Sequence[np.ndarray], number: int, threads: int | None = None
    ) -> np.ndarray:
        """Return the result of slice ``number`` of operands that ``operands_of`` returned.

        ``threads`` are those of ``_slice_program``.
        """
        (result,) = self._slice_program(threads)(*parts_of(self.network, operands, number))
        return np.asarray(result)

    def _repr_html_(self) -> str:
        """Return the figures of the artifact, and its tree."""
        return super()._repr_html_() + self.tree._repr_html_()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as ``Artifact`` does, with the network."""
        return _restored, (super().__reduce__(), self.network)


def _restored(
    reduced: tuple[Callable[..., Artifact], tuple[Any, ...]], network: Network
) -> Contraction:
    """Return the contraction that was pickled."""
    make, arguments = reduced
    return Contraction.of(make(*arguments), network)
