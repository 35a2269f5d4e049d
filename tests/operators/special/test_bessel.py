"""``smelt.BesselI0e`` and ``smelt.BesselI1e`` against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from smelt.operators import find

ORDERS = {"BesselI0e": special.i0e, "BesselI1e": special.i1e}


@pytest.mark.parametrize("name", ORDERS)
def test_agrees_at_all_sizes(name: str) -> None:
    operator = find("smelt", name)
    assert operator is not None
    x = np.concatenate(
        [np.linspace(0, 40, 1601), np.geomspace(1e-300, 1e300, 300), [np.nan, np.inf]]
    )
    (got,) = operator.reference((np.concatenate([x, -x]),), {})
    np.testing.assert_allclose(got, ORDERS[name](np.concatenate([x, -x])), rtol=3e-15)
