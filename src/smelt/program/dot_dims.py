"""Dimension numbers of a product."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DotDims:
    """Dimension numbers of a DotGeneral: paired contracting and batch dims, as in XLA.

    The free dims of a side are all others, in increasing order. The output is ``[batch..., lhs
    free..., rhs free...]``, batch in the order of the lists.
    """

    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]
    lhs_batch: tuple[int, ...] = ()
    rhs_batch: tuple[int, ...] = ()

    def lhs_free(self, rank: int) -> tuple[int, ...]:
        """Return the dims of a rank-``rank`` lhs that are neither contracting nor batch."""
        return _free(rank, self.lhs_contracting, self.lhs_batch)

    def rhs_free(self, rank: int) -> tuple[int, ...]:
        """Return the dims of a rank-``rank`` rhs that are neither contracting nor batch."""
        return _free(rank, self.rhs_contracting, self.rhs_batch)


def _free(rank: int, *used: tuple[int, ...]) -> tuple[int, ...]:
    """Return the dims below ``rank`` that none of ``used`` lists, in increasing order."""
    listed = {dim for dims in used for dim in dims}
    return tuple(dim for dim in range(rank) if dim not in listed)
