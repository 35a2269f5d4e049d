"""Compare an artifact with its source, for ``--verify`` and ``smelt verify``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt.cli.given import read_samples

if TYPE_CHECKING:
    from smelt.check.verification import Report
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


def trials(
    artifact: Artifact, sizes: Mapping[str, int | tuple[int, int]]
) -> dict[str, int | tuple[int, int]]:
    """Return the sizes to compare at: both bounds of a bounded dim, or the one size.

    Bounds of output dims are left out, because the data decides those sizes.
    """
    from smelt.runtime.interface import interface_of

    open_ = interface_of(artifact.model).symbols()
    return {name: n for name, n in sizes.items() if isinstance(n, int) or name in open_}


def called(
    function: Callable[..., Any],
    positional: Sequence[str],
    keyword: Mapping[str, str],
    static: Mapping[str, Any],
    x64: bool | None,
) -> Callable[..., Any]:
    """Return ``function`` as a function of arrays in the order of its model's inputs.

    ``positional`` and ``keyword`` hold the specs as text; each array is cast to its spec. Without
    specs, arrays are passed unchanged.
    """

    def run(*arrays: Any) -> Any:
        from smelt.frontends.jax import compat, prng, specs

        texts = (*positional, *keyword.values())
        values = list(arrays)
        if texts:
            values = [specs.typed(a, text) for a, text in zip(arrays, texts, strict=True)]
        count = len(values) - len(keyword)
        named = dict(zip(keyword, values[count:], strict=True))
        with compat.x64(compat.has_x64() if x64 is None else x64):
            result = function(*values[:count], **named, **static)
            return prng.without_keys(result)

    return run
