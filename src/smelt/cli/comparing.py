"""A function as it is compared with its model: by ``--verify`` and by ``smelt verify``."""

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
    """How ``artifact``, run on this machine, compares with ``source``.

    ``dims`` are the sizes at which a model was compiled; a function is called on what the artifact
    takes.
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
    """The sizes to compare at: of dims with bounds the least and the greatest, of others the one.

    Bounds of outputs are left out: the data decides those.
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
    """``function`` on arrays in the order of the inputs of its model, which has specs as texts.

    Without specs, arrays are given as they are.
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
