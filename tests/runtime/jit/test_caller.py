"""A caller returns None for arrays that do not fit the compiled program."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from smelt.runtime.jit import caller

NOTHING = ctypes.CFUNCTYPE(ctypes.c_int, *(ctypes.c_void_p,) * 4)(lambda *_: 0)
X = np.zeros(2, np.float32)


@pytest.mark.parametrize("given", [(), (X, X), (np.zeros(3, np.float32),), (X.astype(float),)])
def test_ctypes_calls_with_no_other_number_or_kind_of_arrays(
    monkeypatch: pytest.MonkeyPatch, given: tuple[np.ndarray, ...]
) -> None:
    monkeypatch.setattr(caller, "extension", lambda: None)
    address = ctypes.cast(NOTHING, ctypes.c_void_p).value
    assert address is not None
    port = caller.Port(X.dtype, X.shape)
    call = caller.caller(caller.Entry(address, NOTHING, [port], [port], [], 0))
    assert call(X) is not None
    assert call(*given) is None
