"""A kernel that does not compute the steps fused into an operator is refused, not believed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from c_library import Library, compile_c, compile_text, random_inputs

from smelt.errors import InternalError
from smelt.ir import text
from smelt.native.kernels import conv, dot_epilogue, kernel_of
from smelt.native.kernels.convolution import gather
from smelt.native.kernels.convolution.algorithm import Algorithm
from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.epilogue import Epilogue, ends_in_relu
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.rewrite import fuse_epilogue

HEAD = "float[1,4,3,3] x, float[5,4,3,3] w"
STEPS = {
    "Relu": f"g ({HEAD}) => (float[1,5,1,1] y) {{ c = Conv(x, w) y = Relu(c) }}",
    "Neg": f"g ({HEAD}) => (float[1,5,1,1] y) {{ c = Conv(x, w) y = Neg(c) }}",
    "Add, Relu": f"g ({HEAD}, float[1,5,1,1] z) => (float[1,5,1,1] y)"
    " { c = Conv(x, w) s = Add(c, z) y = Relu(s) }",
}


def one_pixel(cx: KernelContext, window: Window) -> None:
    """A convolution whose result is one pixel, written by somebody who knows of no steps."""
    x, w, y, body = cx.input(0), cx.input(1), cx.output(), cx.body
    with body.loop("o", w.shape[0]):
        body.line("float sum = 0;")
        with body.loop("i", x.size):
            body.line(f"sum += {x.name}[i] * {w.name}[o * {x.size} + i];")
        body.line(f"{y.name}[o] = sum;")


def nothing(instance: Instance, window: Window) -> int:
    return 0


def use(monkeypatch: pytest.MonkeyPatch, **told: bool) -> None:
    monkeypatch.setattr(
        conv, "ALGORITHMS", (Algorithm(one_pixel, nothing, **told), gather.ALGORITHM)
    )


@pytest.mark.parametrize("name", ["Neg", "Add, Relu"])
def test_a_way_that_says_nothing_of_steps_is_given_none(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch)
    library = Library({name: STEPS[name]})
    library.check(name, random_inputs(library.models[name].source))


@pytest.mark.parametrize("name", STEPS)
def test_a_way_that_says_so_and_does_not_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, epilogue=True)
    with pytest.raises(InternalError, match=f"E964 .* does not compute {name}, fused into it"):
        compile_text(STEPS[name])


def test_a_way_that_loses_the_relu_of_its_convolution_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(monkeypatch)
    with pytest.raises(InternalError, match=r"E964 .* Relu"):
        compile_text(STEPS["Relu"])

    def with_relu(cx: KernelContext, window: Window) -> None:
        one_pixel(cx, window)
        assert ends_in_relu(cx)
        with cx.body.loop("o", cx.input(1).shape[0]):
            cx.body.line("y0[o] = y0[o] < 0 ? 0 : y0[o];")

    monkeypatch.setattr(conv, "ALGORITHMS", (Algorithm(with_relu, nothing),))
    library = Library({"relu": STEPS["Relu"]})
    library.check("relu", random_inputs(library.models["relu"].source))


def test_a_product_that_drops_its_epilogue_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dot_epilogue, "epilogue_of", lambda *_: Epilogue())
    graph = "g (float[5,9] x, float[9,12] w) => (float[5,12] y) { c = MatMul(x, w) y = Exp(c) }"
    with pytest.raises(InternalError, match=r"E964 .* DotGeneral does not compute Exp"):
        compile_text(graph)


CLAIMING = {
    "MaxPool": "y = MaxPool<kernel_shape=[2,2]>(x)",
    "AveragePool": "y = AveragePool<kernel_shape=[2,2]>(x)",
    "ReduceSum": "a = Constant<value_ints=[1]>() y = ReduceSum(x, a)",
    "Softmax": "y = Softmax(x)",
    "Resample": 's = Constant<value_floats=[1.0,1.0,2.0,2.0]>() y = Resize<mode="linear">(x, , s)',
    "ConvTranspose": "w = Constant<value_floats=[1.0]>() s = Constant<value_ints=[1,1,1,1]>()"
    " k = Reshape(w, s) y = ConvTranspose(x, k)",
}


@pytest.mark.parametrize("op", CLAIMING)
def test_whatever_claims_steps_has_to_compute_them(
    op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pools, reductions and others have no epilogue: one that is said to have it is found out."""
    model = text.parse(f"g (float[1,1,6,6] x) => (z) {{ {CLAIMING[op]} z = Neg(y) }}", 23)
    found = kernel_of(op)
    assert found is not None
    claims = replace(found, supports_side_operand=lambda instance, shape: True)
    monkeypatch.setattr(
        fuse_epilogue, "kernel_of", lambda name: claims if name == op else kernel_of(name)
    )
    with pytest.raises(InternalError, match=f"E964 the kernel of {op} does not compute Neg"):
        compile_c(model)
