"""Every error code, explained: what ``smelt explain E101`` prints and ``docs/errors.md`` lists."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes import (
    batches,
    contractions,
    core_ml,
    decoding,
    extensions,
    internal,
    jax_functions,
    limits,
    merging,
    models,
    operators,
    pipelines,
    precision,
    resources,
    results,
    targets,
    torch_graphs,
    usage,
)
from smelt.error_codes.code import ErrorCode

_USAGE_PARTS = (usage, pipelines, targets, extensions, contractions, batches, merging, precision)
_USAGE = dict(sorted(entry for part in _USAGE_PARTS for entry in part.CODES.items()))

FAMILIES: Mapping[str, tuple[str, Mapping[str, ErrorCode]]] = {
    "E1": (
        "JAX functions, PyTorch graphs and Core ML programs",
        {**jax_functions.CODES, **torch_graphs.CODES, **core_ml.CODES},
    ),
    "E2": ("operators that a target or a runner lacks", operators.CODES),
    "E3": ("invalid models", models.CODES),
    "E4": ("limits of a target", limits.CODES),
    "E5": ("resource limits", resources.CODES),
    "E6": ("usage", _USAGE),
    "E7": ("results that differ", results.CODES),
    "E8": ("text generation", decoding.CODES),
    "E9": ("internal errors of smelt", internal.CODES),
}
"""Each family by the first two characters of its codes: the subject, and the codes."""

CODES: Mapping[str, ErrorCode] = {
    code: known for _, family in FAMILIES.values() for code, known in family.items()
}

__all__ = ["CODES", "FAMILIES", "ErrorCode"]
