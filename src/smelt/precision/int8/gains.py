"""What a product gains in fewer bits: bytes, time in ONNX Runtime, or instructions of a CPU.

Time and instructions are those of the kernel in float minus those of the kernel in integers. A
product that would not gain by integers may still store its weights in fewer bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from smelt.errors import UsageError, did_you_mean
from smelt.precision.int8.candidates import Candidate
from smelt.targets.c import cpu_costs

Gain = Literal["time", "bytes", "cycles"]
GAINS: tuple[Gain, ...] = ("time", "bytes", "cycles")


class Kernel(NamedTuple):
    """The cost of a kernel: per multiplication, weight, element read and element written."""

    macs: float
    weights: float
    read: float
    written: float

    def cost(self, candidate: Candidate) -> float:
        """Return the cost of the products of ``candidate``."""
        amounts = (candidate.macs, candidate.weights, candidate.read, candidate.written)
        return sum(each * amount for each, amount in zip(self, amounts, strict=True))


Kernels = Mapping[tuple[str, str], Kernel]
"""Kernels by the kind of a candidate and its form, ``float`` if it is not quantized."""

NANOSECONDS: Kernels = {
    ("product", "float"): Kernel(0.0165, 0.106, 0, 0),
    ("product", "static"): Kernel(0.0025, 0.034, 0.3, 0),
    ("product", "dynamic"): Kernel(0.0025, 0.034, 0.4, 0),
    ("Conv", "float"): Kernel(0.012, 0, 0.05, 0.02),
    ("Conv", "static"): Kernel(0.0027, 0, 0.13, 0.16),
    ("depthwise", "float"): Kernel(0, 0, 0, 0.74),
    ("depthwise", "static"): Kernel(0, 0, 0, 0.62),
}
"""Of ONNX Runtime 1.32 on one thread of an x86-64 CPU with VNNI.

Read off minima of 25 runs: products of 1 to 128 rows and 64 to 3072 columns, convolutions of 3 to
960 channels. The time of a call, 3 to 12 microseconds, is left out: it hides what small models gain
on other CPUs.
"""


@dataclass(frozen=True)
class Gains:
    """The gain of a form of a candidate. ``kernels`` is None for bytes.

    ``dequantize`` is the cost of an element that is turned into a float.
    """

    kind: Gain
    kernels: Kernels | None
    dequantize: float = 0.0

    def of(self, candidate: Candidate, form: str, *, reads_codes: bool = False) -> float:
        """Return what ``form`` saves: bytes for weights, else by ``kernels``; may be negative.

        ``reads_codes``: a static product need not quantize its operand, which is codes already.
        """
        if form == "weights" or self.kernels is None:
            return candidate.bytes_saved
        whole = self.kernels[candidate.kind, "float"].cost(candidate)
        kernel = self.kernels[candidate.kind, form]
        if reads_codes and candidate.kind == "product":
            kernel = kernel._replace(read=0)
        return whole - kernel.cost(candidate)


def gains_of(kind: str, cpu: str | None = None) -> Gains:
    """Return the gains of a ``kind``; ``cpu`` is a CPU of the target C, for ``cycles`` only.

    Raises UsageError E679 for an unknown kind or CPU.
    """
    if kind == "bytes":
        gains = Gains("bytes", None)
    elif kind == "time":
        gains = Gains("time", NANOSECONDS)
    elif kind == "cycles":
        return _cycles(cpu)
    else:
        raise UsageError(
            "E679",
            f"gain={kind!r} is not a valid choice",
            why=f"choices are {', '.join(GAINS)}",
            fix=did_you_mean(kind, GAINS, "--gain time"),
        )
    if cpu is not None:
        raise UsageError(
            "E679",
            f"cpu={cpu} has no effect",
            why="only a gain in cycles is estimated for a CPU",
            fix=f"--gain cycles --option cpu={cpu}",
        )
    return gains


def _cycles(cpu: str | None) -> Gains:
    """Return the gains in instructions on ``cpu``, of the table that ``smelt inspect`` uses.

    Bytes written count four for a float. A convolution reads codes that the node in front of it
    stores; any other product quantizes its operand, and returns floats.
    """
    costs = cpu_costs.costs_of(cpu or "")
    known = cpu_costs.measured_cpus()
    if costs is None:
        raise UsageError(
            "E679",
            f"the cycles of cpu={cpu} are not known" if cpu else "a gain in cycles needs a CPU",
            why=f"kernels were counted on {', '.join(known)}",
            fix=did_you_mean(cpu or "", known, f"--option cpu={known[0]}"),
        )

    def row(kind: str, element_bytes: int, *, quantizes: bool = False) -> Kernel:
        """Return the kernel ``kind``, which writes elements of so many bytes."""
        found = costs.kinds.get(kind) or costs.kinds[cpu_costs.OTHER[kind.endswith("int8")]]
        to_codes = costs.kinds["QuantizeLinear int8"].written if quantizes else 0.0
        return Kernel(found.macs, 0, to_codes, element_bytes * found.written)

    conv, integers = row("Conv float", 4), row("QLinearConv int8", 1)
    kernels = {
        ("Conv", "float"): conv,
        ("Conv", "static"): integers,
        ("depthwise", "float"): conv,
        ("depthwise", "static"): integers,
        ("product", "float"): row("DotGeneral float", 4),
        ("product", "static"): row("QLinearMatMul int8", 1, quantizes=True),
        ("product", "dynamic"): row("other int8", 4, quantizes=True),
    }
    return Gains("cycles", kernels, row("DequantizeLinear float", 4).written)
