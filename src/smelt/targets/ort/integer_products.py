"""Find out whether this CPU multiplies uint8 by int8 exactly in ONNX Runtime.

The runtime's x86 kernels without VNNI add two products in 16 bits, which saturate. With VNNI, and
on other architectures, sums have 32 bits.
"""

from __future__ import annotations

import platform
import re
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
VNNI = frozenset({"avx512_vnni", "avx_vnni"})
X86 = frozenset({"x86_64", "amd64", "i386", "i686"})


def are_exact(machine: str | None = None, cpuinfo: Path = CPUINFO) -> bool:
    """True if sums of uint8 times int8 products cannot saturate on this CPU.

    False if they can, or if the CPU's features are unknown.
    """
    if (platform.machine() if machine is None else machine).lower() not in X86:
        return True
    try:
        flags = re.search(r"^flags\s*:(.*)$", cpuinfo.read_text(), re.MULTILINE)
    except OSError:
        return False
    return flags is not None and not VNNI.isdisjoint(flags[1].split())
