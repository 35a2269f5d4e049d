"""Discrete Fourier transforms through NumPy."""

from __future__ import annotations

import numpy as np

from smelt.program.instruction import SPECTRUM
from smelt.targets.host.kernels.kernel import Array, Call, Step, kernel


@kernel(SPECTRUM)
def spectrum(call: Call) -> Step:
    """Return the step of a DFT along ``axis``, padded or cut to ``length``.

    The last dim has size 2 for complex numbers (real and imaginary part), 1 for real ones.
    ``onesided`` keeps the first half of the spectrum of real numbers; with ``inverse`` it reads
    such a half.
    """
    axis, length = call.integer("axis"), call.integer("length")
    inverse, onesided = bool(call.integer("inverse")), bool(call.integer("onesided"))
    parts = call.input(0).shape[-1]

    def run(x: Array, out: Array) -> None:
        """Transform ``x`` along the axis."""
        if not out.size:
            return
        complex_x = (
            x[..., 0]
            if parts == 1
            else x[..., 0] + np.asarray(1j, f"c{2 * x.itemsize}") * x[..., 1]
        )
        if inverse and onesided:
            out[..., 0] = np.fft.irfft(complex_x, length, axis)
            return
        if onesided and parts == 1:
            transformed = np.fft.rfft(complex_x, length, axis)
        else:
            transformed = (np.fft.ifft if inverse else np.fft.fft)(complex_x, length, axis)
        count = out.shape[axis]
        index = (slice(None),) * axis + (slice(0, count),)
        out[..., 0], out[..., 1] = transformed.real[index], transformed.imag[index]

    return Step(run)
