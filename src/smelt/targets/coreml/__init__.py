"""The ``coreml`` target: an ML Program for Core ML, as an ``.mlpackage`` folder.

It writes the format itself: nothing of Core ML's own tools is needed.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.passes.pipelines import EXPANDED, ROUNDS
from smelt.targets.base import Limits, Target
from smelt.targets.coreml.emission import EXTENSIONS, UNSIGNED_FIX
from smelt.targets.coreml.options import Options
from smelt.targets.coreml.phases import allocate, computes, emit, schedule
from smelt.targets.coreml.registry import ROWS
from smelt.targets.coreml.saved import open_folder

PASSES = (
    f"split-unsigned,{EXPANDED},fixpoint(split-unsigned,decompose-operators,"
    "inline-operator-bodies,int-op-canonicalization,"
    "expand-high-rank-reshape-and-transpose,const-elimination,noop-elimination,"
    f"dead-code-elimination){{max={ROUNDS}}},"
    "fuse-elementwise-to-batchnorm{scalars=false},dedup-op-and-var-names"
)
"""Passes after the default pipeline.

They replace operators that the target cannot write by others, and ranks above 5 by lower ones. A
scale and an offset for each channel become one BatchNormalization. Unsigned integers are split
before bodies are inlined: the generator of random numbers then has shifts by constants."""

TYPES = frozenset(
    {
        *(ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BOOL),
        *(ir.DataType.INT64, ir.DataType.INT32, ir.DataType.INT16, ir.DataType.INT8),
        *(ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.INT4, ir.DataType.UINT4),
    }
)

REMEDIES = {
    ir.DataType.DOUBLE: "compute it in float32: --option float64=float32; or in JAX without x64",
    ir.DataType.UINT32: UNSIGNED_FIX,
    ir.DataType.UINT64: UNSIGNED_FIX,
}

coreml = Target(
    name="coreml",
    summary="an ML Program for Core ML, as an .mlpackage folder",
    limits=Limits(
        TYPES,
        dynamic_dims=False,
        bounded_dims=True,
        interface_dtypes=frozenset({ir.DataType.UINT32}),
        why_fixed="a package states the least and the greatest size of each dim of its inputs",
        max_rank=5,
        empty_tensors=False,
        remedies=REMEDIES,
    ),
    passes=PASSES,
    kernels=frozenset(ROWS) - {name for _, name in EXTENSIONS},
    computes=computes,
    extensions=EXTENSIONS,
    options=Options,
    schedule=schedule,
    allocate=allocate,
    emit=emit,
    tolerance=2e-2,
    open=open_folder,
)
