"""Every public function of ``jax.scipy.special`` that has real results, against JAX."""

from __future__ import annotations

import jax.scipy.special as sp
import numpy as np
import pytest
from sampling import sampled

RNG = np.random.default_rng(0)
REAL = np.asarray(RNG.normal(size=7) * 2)
POSITIVE = np.abs(REAL) + 0.3
UNIT = RNG.uniform(0.05, 0.95, 7)

OF_REAL = (
    *("dawsn", "erf", "erfc", "erfcx", "expi", "expit", "gammasgn", "i0", "i0e", "i1", "i1e"),
    *("log_ndtr", "log_softmax", "logsumexp", "ndtr", "sici", "softmax", "fresnel"),
)
OF_POSITIVE = (*("digamma", "entr", "exp1", "factorial", "gamma", "gammaln", "loggamma", "spence"),)
OF_UNIT = ("erfinv", "logit", "ndtri")
OTHERS = {
    "bernoulli": (lambda x: x + sp.bernoulli(5)[-1], REAL),
    "bessel_jn": (lambda x: sp.bessel_jn(x, v=3), POSITIVE),
    "beta": (sp.beta, POSITIVE, UNIT),
    "betainc": (sp.betainc, POSITIVE, UNIT, UNIT),
    "betaln": (sp.betaln, POSITIVE, UNIT),
    "boxcox": (sp.boxcox, POSITIVE, REAL),
    "boxcox1p": (sp.boxcox1p, POSITIVE, REAL),
    "comb": (sp.comb, POSITIVE + 5, POSITIVE),
    "expn": (lambda x: sp.expn(2, x), POSITIVE),
    "gammainc": (sp.gammainc, POSITIVE, UNIT),
    "gammaincc": (sp.gammaincc, POSITIVE, UNIT),
    "hyp1f1": (sp.hyp1f1, POSITIVE, UNIT, REAL),
    "hyp2f1": (sp.hyp2f1, POSITIVE, UNIT, POSITIVE + 1, UNIT),
    "kl_div": (sp.kl_div, POSITIVE, UNIT),
    "multigammaln": (lambda x: sp.multigammaln(x, 3), POSITIVE + 2),
    "owens_t": (sp.owens_t, REAL, POSITIVE),
    "poch": (sp.poch, POSITIVE, UNIT),
    "polygamma": (lambda x: sp.polygamma(2, x), POSITIVE),
    "rel_entr": (sp.rel_entr, POSITIVE, UNIT),
    "xlog1py": (sp.xlog1py, REAL, UNIT),
    "xlogy": (sp.xlogy, REAL, POSITIVE),
    "zeta": (sp.zeta, POSITIVE + 1, UNIT),
}
CASES = {
    **{name: (getattr(sp, name), REAL) for name in OF_REAL},
    **{name: (getattr(sp, name), POSITIVE) for name in OF_POSITIVE},
    **{name: (getattr(sp, name), UNIT) for name in OF_UNIT},
    **OTHERS,
}
COMPLEX = {"sph_harm_y", "wofz"}


@pytest.mark.parametrize("name", sampled(CASES, 2))
def test_converts(check, name):
    fn, *numbers = CASES[name]
    specs = ["f32[7]"] * len(numbers)
    check(fn, *specs, inputs=[numbers], rtol=3e-4, atol=1e-6, compiled=True)


def test_every_public_function_is_here():
    public = {name for name in dir(sp) if not name.startswith("_")}
    assert public == {*CASES} | COMPLEX
