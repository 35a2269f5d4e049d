"""Guess whether the Neural Engine runs an operation, by rules from reports of users.

Apple documents no such rules; they differ by chip and system. So each verdict is *likely*,
*unlikely* or *unknown*, with the reason, and a hint where a rewrite is known to help.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from smelt.mlpackage.program import Element, Operation, Package, TensorType

LIKELY, UNLIKELY, UNKNOWN = "likely", "unlikely", "unknown"

LARGEST_SIZE = 16384
"""The largest size of a dim that ONNX Runtime's provider for Core ML gives to the Neural Engine."""

_SEEN_ON_ENGINE = """
    add avg_pool batch_norm clip concat conv conv_transpose elu erf exp expand_dims gelu
    instance_norm layer_norm leaky_relu linear matmul max_pool maximum minimum mul pad
    pixel_shuffle prelu real_div reduce_max reduce_mean reduce_sum relu reshape rsqrt
    scaled_dot_product_attention
    sigmoid sigmoid_hard silu slice_by_index softmax softplus split sqrt squeeze sub tanh transpose
    upsample_nearest_neighbor
"""
_ON_CPU = {
    "cond": "control flow runs on the CPU",
    "cumsum": "sums along an axis were seen on the CPU",
    "gather_nd": "gathers by tuples were seen on the CPU",
    "non_zero": "the size of its result depends on data",
    "scatter": "scatters were seen on the CPU",
    "scatter_along_axis": "scatters were seen on the CPU",
    "scatter_nd": "scatters were seen on the CPU",
    "topk": "topk and its readers were seen on the CPU (rf-detr, pull request 1495)",
    "while_loop": "control flow runs on the CPU",
    "lstm": "recurrent layers were seen on the CPU",
}


class Verdict(NamedTuple):
    """The guess for one operation, its reason, and a hint, which may be empty."""

    placement: str
    why: str
    hint: str = ""


Rule = Callable[[Operation, Mapping[str, TensorType], Mapping[str, Any]], Verdict | None]


def _of_types(
    operation: Operation, types: Mapping[str, TensorType], _: Mapping[str, Any]
) -> Verdict | None:
    """Return UNLIKELY for float32, integers, open sizes and large sizes; else None."""
    kinds = [types[name] for name in _data(operation) if name in types]
    if any(kind.element == Element.FLOAT32 for kind in kinds):
        return Verdict(UNLIKELY, "the Neural Engine computes in float16", "precision=fp16")
    if not any(kind.element == Element.FLOAT16 for kind in kinds):
        return Verdict(UNLIKELY, "integers and bools were seen on the CPU")
    dims = [dim for kind in kinds for dim in kind.dims or ()]
    if None in dims:
        hint = "list the sizes (sizes=...), or write one function a size"
        return Verdict(UNLIKELY, "open sizes: 0 % on the engine in coremltools issue 2370", hint)
    if any(dim > LARGEST_SIZE for dim in dims if dim is not None):
        return Verdict(UNLIKELY, f"a size is above {LARGEST_SIZE}", "split the dim")
    return None


def _of_window(
    operation: Operation, _: Mapping[str, TensorType], constants: Mapping[str, Any]
) -> Verdict | None:
    """Return a verdict on poolings with large windows or strides; None for all others."""
    if operation.type not in ("max_pool", "avg_pool"):
        return None
    names = [str(operation.inputs[key][0]) for key in ("kernel_sizes", "strides")]
    kernel, strides = (constants.get(name) for name in names)
    if kernel is not None and max(kernel) > 13:
        return Verdict(UNLIKELY, "a pooling window above 13 (hollance/neural-engine, issue 1)")
    if strides is not None and max(strides) > 2:
        return Verdict(UNKNOWN, "a pooling stride above 2 (hollance/neural-engine, issue 2: old)")
    return None


def _of_operator(
    operation: Operation, types: Mapping[str, TensorType], _: Mapping[str, Any]
) -> Verdict | None:
    """Return the verdict for the operator, from the tables above."""
    if operation.type in _ON_CPU:
        return Verdict(UNLIKELY, _ON_CPU[operation.type])
    if operation.type not in _SEEN_ON_ENGINE.split():
        return Verdict(UNKNOWN, "no report names this operation")
    hint = ""
    kind = types.get(operation.outputs[0].name) if operation.outputs else None
    dims = (kind.dims or ()) if kind is not None else ()
    if operation.type == "linear":
        hint = "Apple recommends 1x1 convolutions over (B, C, 1, S)"
    elif operation.type in ("reshape", "transpose"):
        hint = "Apple recommends to avoid reshapes and transposes between layers"
    elif dims and isinstance(dims[-1], int) and dims[-1] % 32 and dims[-1] < 32:
        hint = "the last dim is padded to 64 bytes: put a larger one last"
    return Verdict(LIKELY, "seen on the engine", hint)


RULES: Sequence[Rule] = (_of_types, _of_window, _of_operator)
"""The first rule that returns a verdict decides; each gets an operation, the types of values and
the numbers of constants, both by name."""


def _data(operation: Operation) -> list[str]:
    """Return the names of operands and results."""
    operands = [each for group in operation.inputs.values() for each in group]
    return [each for each in operands if isinstance(each, str)] + [
        v.name for v in operation.outputs
    ]


def placements(package: Package) -> dict[str, Any]:
    """Return, for report.json, how many operations have each verdict, each reason and each hint."""
    counts: Counter[str] = Counter()
    reasons: Counter[tuple[str, str, str]] = Counter()
    hints: Counter[str] = Counter()
    types: dict[str, TensorType] = {}
    constants: dict[str, Any] = {}
    for function in package.program.functions.values():
        types |= {v.name: v.type for v in function.inputs if isinstance(v.type, TensorType)}
    for block in package.blocks():
        for operation in block.operations:
            named = {v.name: v.type for v in operation.outputs if isinstance(v.type, TensorType)}
            if operation.type == "const":
                constants[operation.outputs[0].name] = operation.attributes["val"].value
                continue
            types |= named
            if operation.type.startswith("constexpr") or operation.type == "cast":
                continue
            verdicts = (rule(operation, types, constants) for rule in RULES)
            verdict = next(each for each in verdicts if each is not None)
            counts[verdict.placement] += 1
            reasons[verdict.placement, operation.type, verdict.why] += 1
            if verdict.hint:
                hints[verdict.hint] += 1
    return {
        **{name: counts[name] for name in (LIKELY, UNLIKELY, UNKNOWN)},
        "reasons": [
            {"placement": placement, "operator": name, "why": why, "count": count}
            for (placement, name, why), count in sorted(reasons.items())
            if placement != LIKELY
        ],
        "hints": [{"hint": hint, "count": count} for hint, count in hints.most_common()],
        "basis": "rules from reports of users; not measured",
    }
