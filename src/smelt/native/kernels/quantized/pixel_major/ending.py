"""What follows the sums of a layer: the names of its C functions, and its data in C."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.epilogue import Epilogue
from smelt.native.kernels.quantized.operands import bias_steps, requantization
from smelt.native.kernels.quantized.pixel_major.c_text import declare_pairs, header
from smelt.native.kernels.quantized.pixel_major.weights import TOGETHER
from smelt.native.kernels.quantized.rounded import EXACT


@dataclass(frozen=True)
class Ending:
    """How sums are stored: the name of the C functions, and the C type of a result."""

    name: str
    result: str


def declare_ending(cx: KernelContext, epilogue: Epilogue, magnitudes: np.ndarray) -> Ending:
    """Return the ending of ``epilogue``, and declare the C struct ``end`` with its data.

    ``magnitudes`` are the sums of absolute weights of each filter or column.
    """
    declare_pairs(cx)
    header(cx, "endings")
    result = cx.output().type
    byte = "int8" if result.signed else "uint8"
    zero = 0
    names = {"bias": epilogue.bias}
    if epilogue.fixed is not None:
        fixed = epilogue.fixed
        kind, zero = "fixed", fixed.zero
        names |= {"multipliers": fixed.multipliers, "shifts": fixed.shifts, "zeros": fixed.zeros}
        words = {
            "ZERO": "e->zeros[channel]" if fixed.zeros else "e->zero",
            "LOW": str(fixed.low),
        }
        kind += "_zeros" if fixed.zeros else ""
        ending = Ending(f"{kind}_{byte}", f"{byte}_t")
        header(cx, "finish_fixed", NAME=ending.name, BYTE=byte, **words)
    elif not epilogue.is_bytes:
        ending = Ending("sum", "int32_t")
        header(cx, "finish_sum", NAME=ending.name)
    else:
        scaled = requantization(cx, len(magnitudes))
        assert scaled is not None  # a result of bytes has scales
        zero = scaled.zero
        names |= {"factors": epilogue.factors, "fractions": epilogue.fractions}
        kind = "byte" if _is_exact(cx, scaled.factors, magnitudes) else "clamped"
        kind += "_fractions" if epilogue.fractions else ""
        ending = Ending(f"{kind}_{byte}", f"{byte}_t")
        value = "(float)sum + scale.fraction" if epilogue.fractions else "(float)sum"
        scaled_sum = f"({value}) * scale.factor"
        words = {
            "FRACTION": "e->fractions[channel]" if epilogue.fractions else "0.0f",
            "SCALED": scaled_sum if kind.startswith("byte") else f"clamped({scaled_sum})",
        }
        header(cx, "finish_byte", NAME=ending.name, BYTE=byte, **words)
    fields = ("bias", "factors", "fractions", "multipliers", "shifts", "zeros")
    values = ", ".join(names.get(field) or "NULL" for field in fields)
    cx.body.line(f"const ending end = {{ {values}, {zero} }};")
    return ending


def row_function(cx: KernelContext, ending: Ending, filters: int, pairs: int) -> str:
    """Declare the C function of a row of pixels for runs of ``pairs``, and return its name.

    Four filters have a function for each remainder of ``pairs`` by four.
    """
    if filters != TOGETHER:
        header(cx, "row_one", NAME=ending.name, RESULT=ending.result)
        return f"row_by_one_{ending.name}"
    rest = str(pairs % 4)
    header(cx, "row_four", NAME=ending.name, RESULT=ending.result, REST=rest)
    return f"row_by_four_{ending.name}_{rest}"


def _is_exact(cx: KernelContext, factors: np.ndarray, magnitudes: np.ndarray) -> bool:
    """True if no scaled sum of a filter reaches ``EXACT``; ``magnitudes`` bound its products."""
    most = magnitudes.astype(np.float64) * 255 + np.abs(bias_steps(cx)).max(initial=0) + 1
    return bool(np.all(most * np.abs(factors.astype(np.float64)) < EXACT - 1024))
