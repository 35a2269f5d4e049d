"""The x86 versions of a library from which each run chooses, narrowest vectors first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Version:
    """The name of a version, the CPU features it needs, and its floats per vector."""

    name: str
    features: tuple[str, ...]
    lanes: int

    @property
    def gcc(self) -> str:
        """The features as a target of GCC."""
        return ",".join(self.features)

    @property
    def clang(self) -> str:
        """The features as an attribute of clang."""
        return f'__attribute__((target("{",".join(self.features)}")))'

    @property
    def test(self) -> str:
        """A C expression that is true on CPUs with the features."""
        return " && ".join(f'__builtin_cpu_supports("{feature}")' for feature in self.features)


AVX2 = ("avx2", "fma")
VERSIONS = (
    Version("wide", AVX2, 8),
    Version("widest", (*AVX2, "avx512f", "avx512vl", "avx512bw", "avx512dq"), 16),
)
