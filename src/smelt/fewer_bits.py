"""``smelt.quantize``: quantize as much of a model as a limit on the error of its outputs allows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.compiler import Source, optimize_model
from smelt.errors import UsageError
from smelt.frontends import onnx as onnx_frontend
from smelt.ir.cloning import clone_model
from smelt.ir.opset import opset_of
from smelt.precision.data import Source as DataSource
from smelt.precision.data import calibration_data, held_labels, selection_labels
from smelt.precision.error import Measure, Metric, find_metric, parse_limit
from smelt.precision.int8.clip import METHODS, Ranges
from smelt.precision.int8.gains import Gain, gains_of
from smelt.precision.int8.methods import METHODS as ROUNDING
from smelt.precision.int8.methods import Method
from smelt.precision.int8.quantize import Result, quantize_within
from smelt.precision.int8.resume import Record, digest_of_search, open_record
from smelt.precision.int8.settings import FORMS, QUANT_FORMATS, Activations, QuantFormat, Settings
from smelt.precision.int8.writer import Format
from smelt.precision.int8.written import Metrics
from smelt.targets.ort.integer_products import are_exact

LOWEST_OPSET = 17
"""The opset to which older models are raised.

QuantizeLinear has scales per channel since opset 13, and LayerNormalization exists since 17."""

OPSET_OF_BLOCKS = 21
"""The first opset with 4-bit types, scales per block, and codes of 16 bits."""

BLOCKS = (16, 32, 64, 128)
"""Sizes of 4-bit blocks."""

WEIGHTS = ("int8", "int4", "nf4")
"""Types of weights. Codes of NF4 are indices of a table of 16 numbers, which are dense near 0."""

FOUR_BITS = frozenset({"int4", "nf4"})
"""The types of weights with a scale per block."""


def quantize(
    model: Source,
    calibrate: DataSource | None = None,
    *,
    within: str | float = "1%",
    metric: str | Measure | Metric = "relative",
    labels: np.ndarray | None = None,
    held: DataSource | None = None,
    activations: Activations = "auto",
    weights: str = "int8",
    block: int = 32,
    gain: Gain = "time",
    cpu: str | None = None,
    keep: Iterable[str] = (),
    signed: bool = False,
    weight_bits: int | None = None,
    ranges: Ranges = "minmax",
    per_tensor: bool = False,
    method: Method = "auto",
    quant_format: QuantFormat = "qdq",
    activation_bits: int = 8,
    dims: Mapping[str, int | tuple[int, ...]] | None = None,
    seed: int = 0,
    resume: str | os.PathLike[str] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Result:
    """Return a quantized copy of ``model``, whose outputs have an error of at most ``within``.

    ``calibrate`` is a file, a folder, arrays by input name, or several of these; ``held`` are other
    data to measure the error on. Without data, activations stay in float or are quantized as the
    model runs, and the error is measured on random inputs. ``labels`` are classes for the metric
    ``top1``. ``gain`` is what is gained first: time in ONNX Runtime, bytes, or cycles of a ``cpu``
    of the target C. ``keep`` names operators and results that stay in float. ``signed`` makes
    activations int8. ``weight_bits=7`` suits CPUs whose sums of int8 products saturate, and is the
    default on them; others have 8. ``ranges`` chooses the range of an activation: all numbers, or
    fewer by percentile, entropy or mse; auto keeps the method with the least error. ``per_tensor``
    gives an int8 weight one scale. ``method`` rounds weights: nearest, after channels were
    equalized or scaled, or by gptq; auto keeps the method with the least error. With
    ``quant_format``, operators between quantized values are those of floats, with DequantizeLinear
    and QuantizeLinear around them (qdq), or integer ones such as QLinearConv (qoperator).
    ``activation_bits=16`` gives static activations 16 bits; runtimes then compute in floats.
    ``resume`` is a file that keeps
    measured errors: a search that was stopped goes on there. Raises E683 for static
    activations or such a method without data, E677 if nothing fits, and the errors of data and
    metrics.
    """
    if weight_bits is None:
        weight_bits = 8 if are_exact() else 7
    has_data = calibrate is not None
    choices = [
        ("activations", activations, FORMS),
        ("weights", weights, WEIGHTS),
        ("block", block, BLOCKS),
        ("weight_bits", weight_bits, (7, 8)),
        ("ranges", ranges, (*METHODS, "auto")),
        ("method", method, ROUNDING),
        ("quant_format", quant_format, QUANT_FORMATS),
        ("activation_bits", activation_bits, (8, 16)),
    ]
    _check_choices(choices)
    _check_data(activations, method, has_data=has_data)
    _check_effect(weights, ranges, method, gain, per_tensor=per_tensor, has_data=has_data)
    if quant_format == "qoperator" and weights in FOUR_BITS:
        raise _no_effect("--format qoperator", f"{weights} weights are products of floats")
    if activation_bits == 16:
        _check_effect_of_16_bits(activations, weights, ranges, gain, quant_format)
        gain = "bytes"
    has_new_types = weights in FOUR_BITS or activation_bits == 16
    work = _prepared(model, OPSET_OF_BLOCKS if has_new_types else LOWEST_OPSET)
    data = calibration_data(work, calibrate, held, dims=dims, seed=seed)
    classes = held_labels(data, np.asarray(labels)) if labels is not None else None
    choosing = selection_labels(data, np.asarray(labels)) if labels is not None else None
    metrics = Metrics(find_metric(metric, choosing), find_metric(metric, classes))
    blocks = block if weights in FOUR_BITS else 0
    nf4 = weights == "nf4"
    format_ = Format(signed, weight_bits, blocks, per_tensor, nf4, activation_bits)
    settings = Settings(
        activations,
        gains_of(gain, cpu),
        format_,
        keep=frozenset(keep),
        ranges=ranges,
        method=method,
        quant_format=quant_format,
    )
    limit, record = parse_limit(within, metrics.last), Record()
    if resume is not None:
        digest = digest_of_search(work, data, metrics.choosing, choosing, settings)
        record = open_record(resume, digest)
    return quantize_within(work, data, metrics, limit, settings, say, record)


def _prepared(model: Source, opset: int) -> ir.Model:
    """Return an optimized copy of ``model`` at ``opset`` or its own higher one."""
    if isinstance(model, ir.Model):
        work = onnx_frontend.adopt(clone_model(model), None)
    else:
        work = onnx_frontend.load(model, keep_opset=True)
    optimize_model(work, opset=max(opset, opset_of(work)))
    return work


def _check_choices(rows: Iterable[tuple[str, Any, Iterable[Any]]]) -> None:
    """Raise UsageError E679 if a row of name, value and choices has a value that is no choice."""
    for name, value, allowed in rows:
        if value not in allowed:
            words = ", ".join(map(str, allowed))
            raise UsageError(
                "E679",
                f"{name}={value!r} is not a valid choice",
                why=f"choices are {words}",
                fix=f"use one of {words}",
            )


def _check_data(activations: str, method: str, *, has_data: bool) -> None:
    """Raise UsageError E683 for static activations or a method that needs data without data."""
    if activations == "static" and not has_data:
        raise UsageError(
            "E683",
            "static activations need data",
            why="the range of each activation is measured on inputs that the model will see",
            fix="--calibrate data.npz, or --activations dynamic",
        )
    if method in ("scaled", "gptq") and not has_data:
        raise UsageError(
            "E683",
            f"the method {method} needs data",
            why="it chooses scales or codes by the activations that the model computes on them",
            fix="--calibrate data.npz, or --method nearest",
        )


def _check_effect_of_16_bits(
    activations: str, weights: str, ranges: str, gain: str, quant_format: str
) -> None:
    """Raise UsageError E679 for an option that activations of 16 bits rule out."""
    rows = [
        (activations in ("float", "dynamic"), f"--activations {activations}", "they are static"),
        (weights in FOUR_BITS, f"--weights {weights}", "4-bit weights leave activations in float"),
        (
            ranges != "minmax",
            f"--ranges {ranges}",
            "a step of 16 bits is fine enough for all numbers",
        ),
        (gain == "cycles", "--gain cycles", "C computes with codes of 16 bits in floats"),
        (quant_format == "qoperator", "--format qoperator", "integer operators read 8 bits"),
    ]
    for is_given, option, why in rows:
        if is_given:
            raise UsageError(
                "E679",
                f"{option} does not go with activations of 16 bits",
                why=why,
                fix="leave it out, or --activation-bits 8",
            )


def _check_effect(
    weights: str, ranges: str, method: str, gain: str, *, per_tensor: bool, has_data: bool
) -> None:
    """Raise UsageError E679 for an option that does nothing with the others."""
    why, option = "", "--per-tensor" if per_tensor and ranges == "minmax" else "--ranges"
    if method == "gptq" and weights not in FOUR_BITS:
        why, option = "GPTQ rounds weights of 4 bits", "--method gptq"
    elif weights in FOUR_BITS and (per_tensor or ranges != "minmax"):
        why = f"{weights} weights have a scale per block, and leave activations in float"
    elif weights in FOUR_BITS and gain == "cycles":
        why, option = f"{weights} weights are turned into floats in each run", "--gain cycles"
    elif not has_data and ranges != "minmax":
        why = "ranges are measured only on calibration data"
    if why:
        raise _no_effect(option, why)


def _no_effect(option: str, why: str) -> UsageError:
    """Return E679 for an option that does nothing with the others."""
    return UsageError(
        "E679",
        f"{option} has no effect",
        why=why,
        fix="leave it out, or quantize to int8 with --calibrate data.npz",
    )
