"""Compare an artifact with its source, for ``--verify`` and ``smelt verify``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt.cli.input_values import read_samples

if TYPE_CHECKING:
    from smelt.check.verification import Report
    from smelt.cli.watching import Watched
    from smelt.targets.base import Artifact


def compared(
    source: Any,
    artifact: Artifact,
    dims: Mapping[str, int | tuple[int, int]],
    samples: Sequence[str] | None,
) -> Report:
    """Run ``artifact`` and ``source`` on this machine and return the Report of the comparison.

    ``dims`` are the sizes at which a model was compiled. A function source is called on the same
    arrays as the artifact.
    """
    from smelt.check.verify import verify

    return verify(
        source,
        artifact,
        dims=None if samples or callable(source) else dims,
        samples=read_samples(samples),
        names=("the source", "the artifact"),
    )


def check_result(
    seen: Watched,
    artifact: Artifact,
    reference: Callable[[], Any],
    dims: Mapping[str, int | tuple[int, int]],
    samples: Sequence[str] | None,
) -> Report:
    """Compare ``artifact`` with the ``reference``, put the Report on the page, and return it.

    ``dims`` are the sizes and bounds of the command line. Raises Mismatch if the two differ.
    """
    seen.shown.say("comparing")
    report = compared(reference(), artifact, trials(artifact, dims), samples)
    seen.report.verification = report
    report.check()
    return report


def trials(
    artifact: Artifact, sizes: Mapping[str, int | tuple[int, int]]
) -> dict[str, int | tuple[int, int]]:
    """Return the sizes to compare at: both bounds of a bounded dim, or the one size.

    Bounds of output dims are left out, because the data decides those sizes.
    """
    from smelt.runtime.interface import interface_of

    input_dims = interface_of(artifact.model).symbols()
    return {name: n for name, n in sizes.items() if isinstance(n, int) or name in input_dims}
