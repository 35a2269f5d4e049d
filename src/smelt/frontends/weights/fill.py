"""Fill the weights of a model; names and types are compared before any weight changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel, UsageError, listed
from smelt.frontends.weights.cast import cast as cast_tensor
from smelt.frontends.weights.cast import is_castable
from smelt.frontends.weights.checkpoint_tensors import Tensors, tensors_of
from smelt.frontends.weights.npz import RAW
from smelt.ir.tensors.missing_weights import EXPECTED, fill, missing_weights
from smelt.spans import span

Names: TypeAlias = "Mapping[str, str] | Callable[[str], str]"
"""From the model's name of a weight to its name in the checkpoint."""

FIXES: Mapping[str, str] = {
    "it lacks": "names={WEIGHT: NAME}, or smelt convert --weight-name WEIGHT=NAME, gives the name"
    " of a weight in the checkpoint",
    "it also has": "allow_extra=True, or --extra-weights, ignores entries that the model has no"
    " weight for",
    "types differ:": "cast=True, or --cast-weights, rounds to the types of the model; or trace with"
    " those of the checkpoint",
    "types are lost:": "numpy.savez does not save types that NumPy lacks, such as bfloat16: write"
    " safetensors, or trace with the types that were saved",
    "it has transposed arrays:": "fill_weights also takes arrays by name: transpose them, as in"
    " {NAME: array.T}; PyTorch stores the output axis of a kernel first, flax last",
    "the model has no weight": "in names={WEIGHT: NAME}, the first name is that of the model",
    "shapes or types differ:": "trace with the shapes and types of the checkpoint, or write arrays"
    " like those of the model",
}
"""The fix for each kind of problem."""

SHOWN = 10
"""How many names an error lists per kind."""


def fill_weights(
    model: ir.Model,
    checkpoint: str | Path | Tensors,
    *,
    names: Names | None = None,
    allow_extra: bool = False,
    cast: bool = False,
) -> ir.Model:
    """Fill the weights of ``model`` that lack numbers from ``checkpoint``; return ``model``.

    ``checkpoint`` is a file of safetensors or ``numpy.savez``, a folder of orbax, arrays by name,
    or a tree of dicts and lists of arrays, named by their paths. The numbers stay in the file until
    they are used. Names are paths, and separators do not matter: the weight ``layers_0_kernel``
    matches ``layers/0/kernel`` and ``layers.0.kernel``. A prefix of all names on one side may be
    missing on the other.

    - ``names``: the checkpoint's name of each weight, or of some; weights may be given as paths
      too.
    - ``allow_extra``: ignore entries that the model has no weight for.
    - ``cast``: round floats of another type to the weight's type, such as a bfloat16 checkpoint for
      a float32 model.

    A filled model can be optimized further, because its numbers can be folded.

    Raises InvalidModel E340, which lists missing names with the nearest others, names without a
    weight, and weights of another shape or type; E341 for an unreadable checkpoint; E301 if
    ``model`` is not a model; UsageError E609 if there is no checkpoint, and E115 if no weight lacks
    numbers.
    """
    if not isinstance(model, ir.Model):
        what = f"{type(model).__name__} is not a model in memory"
        raise InvalidModel(
            "E301",
            what,
            fix="smelt.load(path) reads a model from a file",
            why="fill_weights changes the weights of a model in memory",
        )
    waiting = missing_weights(model)
    if not waiting:
        raise UsageError(
            "E115",
            "the model has no weights without numbers",
            why="every weight that it reads has been traced with its numbers",
            fix="trace abstract weights, as jax.eval_shape and nnx.eval_shape return them",
        )
    with span("fill weights", weights=len(waiting)):
        expected = [*model.graph.meta.get(EXPECTED, waiting)]
        tensors = tensors_of(checkpoint)
        matches = _checked_matches(expected, waiting, tensors, names, allow_extra, cast)
        new_tensors = {
            n: _tensor_for(tensors[matches[n]], value, cast) for n, value in waiting.items()
        }
        for name, value in waiting.items():
            fill(value, new_tensors[name])
    return model


def _checked_matches(
    expected: Sequence[str],
    waiting: Mapping[str, ir.Value],
    tensors: Mapping[str, ir.TensorProtocol],
    names: Names | None,
    allow_extra: bool,
    cast: bool,
) -> dict[str, str]:
    """Return the checkpoint's name of each weight that the model needs.

    ``expected`` are all weights of the traced model, ``waiting`` those that lack numbers. Raises
    InvalidModel E340 with all names, shapes and types that do not fit.
    """
    if isinstance(names, Mapping):
        names = _by_weight(names, [*expected, *waiting])
    matches = _matches(expected, tensors, names)
    extra = [] if allow_extra else sorted(tensors.keys() - set(matches.values()))
    problems = _problems(waiting, matches, tensors, extra, cast)
    if isinstance(names, Mapping) and (unknown := sorted(names.keys() - {*expected, *waiting})):
        problems["the model has no weight"] = unknown
    if problems:
        raise InvalidModel(
            "E340",
            "the checkpoint does not fit the model",
            why="; ".join(f"{kind} {listed(lines, SHOWN)}" for kind, lines in problems.items()),
            fix="; ".join(FIXES[kind] for kind in problems),
        )
    return matches


def _by_weight(names: Mapping[str, str], weights: Sequence[str]) -> dict[str, str]:
    """Return ``names``, weight to name in the checkpoint, with keys that are paths replaced by the
    model's names: ``{"layers/0/kernel": "h.w"}`` becomes ``{"layers_0_kernel": "h.w"}``.
    """
    weight_of = {comparison_key(weight): weight for weight in weights}
    return {w if w in weights else weight_of.get(comparison_key(w), w): t for w, t in names.items()}


def _matches(weights: Sequence[str], tensors: Iterable[str], names: Names | None) -> dict[str, str]:
    """Return, for each of ``weights`` that the checkpoint contains, its name there.

    Names are compared without separators. A prefix of all names on one side may be missing on the
    other, so all pairs of prefixes are tried, and the pair with most matches is taken.
    """
    explicit_names = {w: names(w) for w in weights} if callable(names) else dict(names or {})
    present = set(tensors)
    unmatched_tensors = sorted(present - set(explicit_names.values()))
    other_weights = [name for name in weights if name not in explicit_names]
    best: dict[str, str] = {}
    weight_keys = [(w, comparison_key(w)) for w in other_weights]
    tensor_keys = [(t, comparison_key(t)) for t in unmatched_tensors]
    for weight_prefix in _prefix_lengths([key for _, key in weight_keys]):
        short_keys = [(w, key[weight_prefix:]) for w, key in weight_keys]
        for tensor_prefix in _prefix_lengths([key for _, key in tensor_keys]):
            tensor_of = _names_by_short_key(tensor_keys, tensor_prefix)
            matches = {w: tensor_of[key] for w, key in short_keys if key in tensor_of}
            if len(matches) > len(best):
                best = matches
    return {**best, **{w: t for w, t in explicit_names.items() if t in present}}


def comparison_key(name: str) -> str:
    """Return ``name`` with ``_`` as separator, and without the final ``value`` of variables."""
    text = re.sub(r"[\W_]+", "_", name).strip("_")
    return text.removesuffix("_value") or text


def _names_by_short_key(names_and_keys: Sequence[tuple[str, str]], prefix: int) -> dict[str, str]:
    """Return a map from short key to name; a short key lacks the first ``prefix`` characters.

    ``names_and_keys`` holds ``(name, comparison key)``. Names with equal short keys are left out.
    """
    names: dict[str, str] = {}
    ambiguous: set[str] = set()
    for name, key in names_and_keys:
        ambiguous.update({key[prefix:]} & names.keys())
        names[key[prefix:]] = name
    return {key: name for key, name in names.items() if key not in ambiguous}


def _prefix_lengths(texts: Sequence[str]) -> list[int]:
    """Return the lengths of prefixes that all ``texts`` have and that end at ``_``, 0 first."""
    if not texts:
        return [0]
    low, high = min(texts), max(texts)
    common_length = next(
        (i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low)
    )
    return [0, *(i + 1 for i, letter in enumerate(low[:common_length]) if letter == "_")]


def _problems(
    waiting: Mapping[str, ir.Value],
    matches: Mapping[str, str],
    tensors: Mapping[str, ir.TensorProtocol],
    extra: Sequence[str],
    cast: bool,
) -> dict[str, list[str]]:
    """Return the weights that do not fit, by kind of problem in ``FIXES``."""
    problems: dict[str, list[str]] = {kind: [] for kind in FIXES}
    missing = [name for name in waiting if name not in matches]
    problems["it lacks"] = _with_nearest(missing, waiting, matches, tensors)
    problems["it also has"] = list(extra)
    for name, value in waiting.items():
        tensor = tensors[matches[name]] if name in matches else None
        if tensor is not None and not _fits_in(tensor, value, cast):
            types = f"{_described(value)} in the model and {_type(tensor)} in the checkpoint"
            mismatch = f"{name} is {types}"
            problems[_kind(tensor, value)].append(mismatch)
    return {kind: names for kind, names in problems.items() if names}


def _kind(tensor: ir.TensorProtocol, value: ir.Value) -> str:
    """Return a key of ``FIXES``: why ``tensor`` does not fit the weight ``value``."""
    dtype, expected_dims = _type_of(value)
    dims = tuple(tensor.shape.numpy())
    if RAW in tensor.meta and dims[:-1] == expected_dims:
        return "types are lost:"
    if dims != expected_dims and sorted(dims) == sorted(expected_dims):
        return "it has transposed arrays:"
    castable = dims == expected_dims and is_castable(tensor, dtype)
    return "types differ:" if castable else "shapes or types differ:"


def _with_nearest(
    missing: Sequence[str],
    waiting: Mapping[str, ir.Value],
    matches: Mapping[str, str],
    tensors: Mapping[str, ir.TensorProtocol],
) -> list[str]:
    """Return the ``missing`` names, each with the nearest name that no weight uses.

    Only the first ``SHOWN`` names get one. A name unlike all others gets an array of its type.
    """
    unused = sorted(tensors.keys() - set(matches.values()))
    names_by_key = {comparison_key(name): name for name in unused}
    shown: list[str] = []
    for name in missing[:SHOWN]:
        key, value = comparison_key(name), waiting[name]
        names = names_by_key.items()
        fitting = [text for text, free in names if _fits_in(tensors[free], value, cast=True)]
        nearest = get_close_matches(key, fitting, n=1)
        nearest = nearest or get_close_matches(key, names_by_key, n=1)
        if not nearest:  # any name at all, if the type fits
            nearest = get_close_matches(key, fitting, n=1, cutoff=0)
        shown.append(f"{name} (perhaps {names_by_key[nearest[0]]})" if nearest else name)
    return [*shown, *missing[SHOWN:]]


def _described(value: ir.Value) -> str:
    """Return type and shape of a weight as text, ``f32[3,4]``."""
    dtype, dims = _type_of(value)
    return f"{dtype.short_name()}[{','.join(map(str, dims))}]"


def _type_of(value: ir.Value) -> tuple[ir.DataType, tuple[int, ...]]:
    """Return element type and shape of a weight."""
    assert value.dtype is not None
    assert value.shape is not None
    return value.dtype, tuple(value.shape.numpy())


def _type(tensor: ir.TensorProtocol) -> str:
    """Return type and shape of a checkpoint's array as text."""
    dims = [str(dim) for dim in tensor.shape]
    if RAW in tensor.meta:
        return f"[{','.join(dims[:-1])}] of {tensor.meta[RAW]} bytes each"
    return f"{tensor.dtype.short_name()}[{','.join(dims)}]"


def _fits_in(tensor: ir.TensorProtocol, value: ir.Value, cast: bool) -> bool:
    """True if the array has the shape and the type of the weight, or its type can be cast."""
    dtype, expected_dims = _type_of(value)
    dims = tuple(tensor.shape.numpy())
    if RAW in tensor.meta:
        return dims == (*expected_dims, dtype.itemsize)
    return dims == expected_dims and (
        tensor.dtype == dtype or (cast and is_castable(tensor, dtype))
    )


def _tensor_for(tensor: ir.TensorProtocol, value: ir.Value, cast: bool) -> ir.TensorProtocol:
    """Return ``tensor`` named like ``value``, with its type if it was raw bytes or is cast."""
    dtype, dims = _type_of(value)
    if cast and is_castable(tensor, dtype):
        return cast_tensor(tensor, dtype, value.name)
    if RAW in tensor.meta:

        def read() -> ir.Tensor:
            """Return the raw bytes as numbers of the weight's type."""
            array = np.ascontiguousarray(tensor.numpy())
            return ir.Tensor(array.view(dtype.numpy()).reshape(dims))

        return ir.LazyTensor(read, dtype, ir.Shape(dims), name=value.name)
    if isinstance(tensor, ir.Tensor):
        return ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=value.name)
    tensor.name = value.name
    return tensor
