"""The ``host`` target: an in-process function over NumPy, BLAS and LAPACK, with planned buffers.

It runs everything that can be lowered to a Program, on any NumPy dtype of at least 8 bits. Symbolic
dims are planned for when a call gives their sizes.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.passes.pipelines import EXPANDED, EXPANDED_OPERATORS
from smelt.program.lower import extensions_among, lowered_operators
from smelt.targets.base import Limits, Target
from smelt.targets.host.kernels import kernel_of
from smelt.targets.host.kernels.kernel import KERNELS
from smelt.targets.host.options import Options
from smelt.targets.host.phases import DTYPES, computes, plan_arena, plan_steps, write_folder
from smelt.targets.host.saved import open_folder


def element_types(domain: str, op_type: str) -> frozenset[ir.DataType] | None:
    """Return the element types of a declared operator; None for ONNX operators,
    which declare them.
    """
    return DTYPES if domain and kernel_of(f"{domain}::{op_type}") is not None else None


host = Target(
    name="host",
    summary="a function in this process, on NumPy, BLAS and LAPACK",
    emit=write_folder,
    in_process=True,
    passes=EXPANDED,
    kernels=frozenset(lowered_operators()) | EXPANDED_OPERATORS,
    extensions=extensions_among(KERNELS),
    element_types=element_types,
    limits=Limits(dtypes=DTYPES, max_rank=64),
    computes=computes,
    options=Options,
    schedule=plan_steps,
    allocate=plan_arena,
    open=open_folder,
)
