"""``smelt quantize IN -o OUT``: fewer bits, within an error of the outputs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from smelt.cli.arguments import (
    STANDARD,
    find_function,
    is_function,
    one_document,
    parse_dims,
    parse_options,
    write_model,
)
from smelt.cli.command import Json, Model, Output, Seed, TrialDims, command, print_json
from smelt.cli.destinations import check_destination
from smelt.cli.progress import progress, size_of
from smelt.cli.quantize_text import facts, print_result
from smelt.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

Calibrate = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DATA",
        help="A .npz, .npy or .pb file with inputs, or a folder of them. Repeatable. "
        "Each second sample is held out to measure the error. An array whose first dim is a "
        "batch holds a sample a row; any other array of the input's rank is one sample.",
    ),
]
Held = Annotated[
    list[str] | None,
    typer.Option(metavar="DATA", help="Other inputs to measure the error on. Repeatable."),
]
Within = Annotated[
    str,
    typer.Option(metavar="ERROR", help="The largest error of the outputs: 1%, or 0.5 for points."),
]
MetricName = Annotated[
    str,
    typer.Option(
        "--metric",
        metavar="METRIC",
        help="How the error is measured: relative, cosine, kl, top1, or a Python function "
        "package.module:function of reference and outputs.",
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="A .npy file with one class per sample, for top1."),
]
ActivationsOption = Annotated[
    Literal["auto", "static", "dynamic", "float"],
    typer.Option(
        "--activations",
        help="How activations get 8 bits: by measured ranges, by ranges of each run, not at all, or"
        " the better one for each product.",
    ),
]
WeightsOption = Annotated[
    Literal["int8", "int4", "nf4"],
    typer.Option(
        "--weights",
        help="The type of weights. int4 and nf4, a table of 16 numbers, keep activations in float.",
    ),
]
Block = Annotated[
    int,
    typer.Option(
        "--block", metavar="N", help="The number of 4-bit weights with one scale: 16 to 128."
    ),
]
GainOption = Annotated[
    Literal["time", "bytes", "cycles"],
    typer.Option(
        "--gain",
        help="What to gain first: time in ONNX Runtime, bytes, or cycles of a CPU of the target C.",
    ),
]
Resume = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="A file that keeps the measured errors; a search that was stopped, or one with another"
        " --within, goes on there.",
    ),
]
TargetOptions = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="With --gain cycles: cpu=cortex-m4."),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="An operator or a result to keep in float. Repeatable."),
]
Signed = Annotated[bool, typer.Option("--signed", help="Make activations int8, not uint8.")]
ReduceRange = Annotated[
    bool | None,
    typer.Option(
        "--reduce-range/--full-range",
        help="Use 7 bits of int8 weights, for x86 CPUs without VNNI, whose sums saturate, or all 8."
        " By default as this CPU needs.",
    ),
]

RangesOption = Annotated[
    Literal["minmax", "percentile", "entropy", "mse", "auto"],
    typer.Option(
        "--ranges",
        help="How the range of an activation is chosen: all numbers, or fewer with a finer step. "
        "auto keeps the method with the least error.",
    ),
]
PerTensor = Annotated[bool, typer.Option("--per-tensor", help="Give an int8 weight one scale.")]
MethodOption = Annotated[
    Literal["auto", "nearest", "equalized", "scaled", "gptq"],
    typer.Option(
        "--method",
        help="How weights are rounded: to the nearest; after channels between convolutions were "
        "equalized, or those of activations scaled (SmoothQuant; AWQ with 4 bits); 4 bits then by "
        "GPTQ. auto keeps the best by its error.",
    ),
]
ActivationBits = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="The bits of static activations: 8, or 16, with which runtimes compute in floats.",
    ),
]
FormatOption = Annotated[
    Literal["qdq", "qoperator"],
    typer.Option(
        "--format",
        help="What computes with codes: float operators between DequantizeLinear and "
        "QuantizeLinear (qdq), or QLinearConv, QLinearMatMul and MatMulInteger (qoperator).",
    ),
]


@command
def quantize(
    model: Model,
    output: Output,
    calibrate: Calibrate = None,
    held: Held = None,
    within: Within = "1%",
    metric: MetricName = "relative",
    labels: Labels = None,
    activations: ActivationsOption = "auto",
    weights: WeightsOption = "int8",
    block: Block = 32,
    gain: GainOption = "time",
    option: TargetOptions = None,
    keep: Keep = None,
    signed: Signed = False,
    reduce_range: ReduceRange = None,
    ranges: RangesOption = "minmax",
    per_tensor: PerTensor = False,
    method: MethodOption = "auto",
    quant_format: FormatOption = "qdq",
    activation_bits: ActivationBits = 8,
    dim: TrialDims = None,
    seed: Seed = 0,
    resume: Resume = None,
    as_json: Json = False,
) -> None:
    """Give an ONNX model fewer bits, within an error that you choose.

    The file is written only if its error, measured in ONNX Runtime, is within the limit.

    Example: smelt quantize model.onnx --calibrate data.npz --within 1% -o small.onnx
    """
    from smelt.fewer_bits import quantize as quantize_model

    one_document(as_json, output)
    if output != STANDARD:
        check_destination(output, "model")
    source: Any = sys.stdin.buffer.read() if model == STANDARD else model
    with progress(f"reading {model}{size_of(model)}") as shown:
        result = quantize_model(
            source,
            calibrate,
            within=within,
            metric=find_function(metric) if is_function(metric) else metric,
            labels=_read_labels(labels),
            held=held,
            activations=activations,
            weights=weights,
            block=block,
            gain=gain,
            cpu=_cpu_of(option),
            keep=keep or (),
            signed=signed,
            weight_bits=None if reduce_range is None else 7 if reduce_range else 8,
            ranges=ranges,
            per_tensor=per_tensor,
            method=method,
            quant_format=quant_format,
            activation_bits=activation_bits,
            dims=parse_dims(dim) or None,
            seed=seed,
            resume=resume,
            say=shown.say,
        )
        shown.say(f"writing {output}")
        write_model(result.model, output)
    sizes = [Path(path).stat().st_size if Path(path).is_file() else 0 for path in (model, output)]
    if as_json:
        print_json({"schema": "smelt.quantize/1", "output": output, **facts(result, sizes)})
        return
    print_result(result, output, sizes)


def _cpu_of(items: list[str] | None) -> str | None:
    """Return the CPU of ``--option cpu=NAME``; raises UsageError E679 for another option."""
    options = dict(parse_options(items))
    cpu = options.pop("cpu", None)
    if options:
        name = next(iter(options))
        raise UsageError(
            "E679",
            f"--option {name} has no effect",
            why="only a CPU is an option here, for --gain cycles",
            fix="smelt quantize model.onnx --gain cycles --option cpu=cortex-m4",
        )
    return None if cpu is None else str(cpu)


def _read_labels(path: str | None) -> np.ndarray | None:
    """Return the only array in the file ``path``; raises UsageError E685 for several."""
    from smelt.runtime.array_files import read_arrays

    if path is None:
        return None
    arrays = read_arrays(path)
    if len(arrays) != 1:
        raise UsageError(
            "E685",
            f"{path!r} holds {len(arrays)} arrays",
            why="labels are one array with a class for each sample",
            fix="np.save('labels.npy', labels)",
        )
    return next(iter(arrays.values()))
