"""Convolutions over images that space to batch has split become dilated convolutions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import onnx_ir as ir
import pytest
from convolutions import tensor
from rewrites import check_operators, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.convolution.fuse_dilated_conv import fuse_dilated_conv


class Graph:
    """Return the text of a dilated convolution as TensorFlow exports it, channels last or first."""

    def __init__(
        self,
        image: Sequence[int] = (7, 9),
        block: Sequence[int] = (2, 2),
        padding: Sequence[int] = (2, 2, 3, 1),
        crops: Sequence[int] = (0, 1, 1, 0),
        kernel: Sequence[int] = (3, 2),
        *,
        conv: str = "Conv(i, w)",
        conv_pads: Sequence[int] | None = None,
        dilation: int = 1,
        channels: tuple[int, int] = (2, 4),
        batch: str = "N",
        last: bool = True,
        mode: str = "",
        value: str = "",
        back: Sequence[int] | None = None,
    ) -> None:
        n = len(image)
        self.last, self.block, self.conv, self.mode, self.value = last, block, conv, mode, value
        self.padding, self.crops, self.kernel = padding, crops, kernel
        conv_pads = conv_pads or [0] * (2 * n)
        begins, ends = padding[:n], padding[n:]
        padded = [d + p + q for d, p, q in zip(image, begins, ends, strict=True)]
        assert all(d % b == 0 for d, b in zip(padded, block, strict=True))
        self.small = [d // b for d, b in zip(padded, block, strict=True)]
        taps = [dilation * (k - 1) for k in kernel]
        own = [p + q for p, q in zip(conv_pads[:n], conv_pads[n:], strict=True)]
        self.after = [s + p - t for s, p, t in zip(self.small, own, taps, strict=True)]
        self.big = [s * b for s, b in zip(self.after, block, strict=True)]
        cut = [p + q for p, q in zip(crops[:n], crops[n:], strict=True)]
        out = [d - c for d, c in zip(self.big, cut, strict=True)]
        self.c, self.m = channels
        self.back = list(back) if back is not None else [*range(n)]
        self.x = self.shape(batch, image, self.c)
        self.y = self.shape(batch, out, self.m)

    def shape(self, batch: object, spatial: Sequence[int], channels: int) -> str:
        dims = [batch, *spatial, channels] if self.last else [batch, channels, *spatial]
        return str(dims).replace("'", "")

    def part(self, name: str, of: str) -> str:
        """Return space to batch: split each spatial axis, move the blocks first, merge them."""
        n = len(self.block)
        cut = [d for pair in zip(self.small, self.block, strict=True) for d in pair]
        dims = [-1, *cut, self.c] if self.last else [-1, self.c, *cut]
        first = 1 if self.last else 2
        big, small = ([first + 2 * i + j for i in range(n)] for j in (0, 1))
        rest = [*big, 1 + 2 * n] if self.last else [1, *big]
        return self.moved(name, of, dims, [*small, 0, *rest], self.shape(-1, self.small, self.c))

    def join(self, name: str, of: str) -> str:
        n = len(self.block)
        dims = [*self.block, -1]
        dims += [*self.after, self.m] if self.last else [self.m, *self.after]
        first = n + 1 if self.last else n + 2
        woven = [axis for i in range(n) for axis in (first + i, self.back[i])]
        perm = [n, *woven, 2 * n + 1] if self.last else [n, n + 1, *woven]
        return self.moved(name, of, dims, perm, self.shape(-1, self.big, self.m))

    @staticmethod
    def moved(name: str, of: str, dims: Sequence[int], perm: Sequence[int], shape: str) -> str:
        return (
            f"{name}1 = Constant<value_ints={list(dims)}>() {name}2 = Constant<value_ints={shape}>() "
            f"{name}3 = Reshape({of}, {name}1) {name}4 = Transpose<perm={list(perm)}>({name}3) "
            f"{name} = Reshape({name}4, {name}2) "
        )

    def edges(self, name: str, values: Sequence[int], sign: int = 1) -> str:
        return f"{name} = Constant<value_ints={[sign * v for v in values]}>() "

    def text(self, *, more: str = "", rest: str = "") -> str:
        n = len(self.block)
        spatial = [*range(1, n + 1)] if self.last else [*range(2, n + 2)]
        zeros = [0] if self.last else [0, 0]
        tail = [0] if self.last else []
        ends = [-c if c else 2**31 - 1 for c in self.crops[n:]]
        pads = [*zeros, *self.padding[:n], *tail, *zeros, *self.padding[n:], *tail]
        to_first = [0, n + 1, *range(1, n + 1)]
        to_last = [0, *range(2, n + 2), 1]
        group = int(self.conv.split("group=")[1][0]) if "group=" in self.conv else 1
        weight = tensor("w", (self.m, self.c // group, *self.kernel))
        body = (
            self.edges("p", pads) + f"a = Pad{self.mode}(x, p{self.value}) " + self.part("b", "a")
        )
        body += f"i = Transpose<perm={to_first}>(b) " if self.last else "i = Identity(b) "
        body += f"c = {self.conv} "
        body += f"d = Transpose<perm={to_last}>(c) " if self.last else "d = Identity(c) "
        body += self.join("e", "d") + self.edges("s", self.crops[:n]) + self.edges("t", ends)
        body += self.edges("u", spatial) + f"y = Slice(e, s, t, u) {rest}"
        if not self.last:
            body = body.replace("i = Identity(b) ", "").replace("(i,", "(b,")
            body = body.replace("d = Identity(c) ", "").replace("(d,", "(c,")
        return f"g (float{self.x} x) => (float{self.y} y{more}) <{weight}, float[4] bias = {{1,2,3,4}}> {{ {body} }}"


def conv_of(model: ir.Model) -> dict[str, object]:
    [node] = [node for node in model.graph if node.op_type == "Conv"]
    return {name: list(node.attributes[name].as_ints()) for name in ("dilations", "pads")}


FIRST = ["Conv"]
LAST = ["Transpose", "Conv", "Transpose"]
FUSED = {
    "channels last": (Graph(), LAST, [2, 2], [2, 1, 2, 1]),
    "channels first": (Graph(last=False), FIRST, [2, 2], [2, 1, 2, 1]),
    "one spatial axis": (
        Graph((7,), (3,), (1, 1), (0, 1), (2,), last=False),
        FIRST,
        [3],
        [1, 0],
    ),
    "three spatial axes": (
        Graph((4, 4, 4), (2, 2, 1), (0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0), (2, 1, 3), last=False),
        FIRST,
        [2, 2, 1],
        [0, 0, 0, 0, 0, 0],
    ),
    "blocks of two sizes": (
        Graph((7, 9), (3, 2), (2, 2, 0, 1), (1, 2, 0, 0), (2, 3)),
        LAST,
        [3, 2],
        [1, 0, 0, 1],
    ),
    "a block of 1": (Graph((7, 9), (1, 3), (1, 0, 1, 0), (0, 0, 1, 0)), LAST, [1, 3], [1, 0, 0, 0]),
    "pads of the convolution": (
        Graph(conv="Conv<pads=[1,0,1,1]>(i, w)", conv_pads=(1, 0, 1, 1)),
        LAST,
        [2, 2],
        [4, 1, 4, 3],
    ),
    "a dilation of its own": (
        Graph((16, 9), conv="Conv<dilations=[2,2]>(i, w)", dilation=2, padding=(2, 2, 2, 1)),
        LAST,
        [4, 4],
        [2, 1, 1, 1],
    ),
    "groups and a bias": (
        Graph(conv="Conv<group=2>(i, w, bias)", last=False),
        FIRST,
        [2, 2],
        [2, 1, 2, 1],
    ),
    "valid": (Graph(conv='Conv<auto_pad="VALID">(i, w)'), LAST, [2, 2], [2, 1, 2, 1]),
    "one image, one channel": (Graph(batch="1", channels=(1, 4)), LAST, [2, 2], [2, 1, 2, 1]),
}


@pytest.mark.parametrize(
    ("graph", "operators", "dilations", "pads"), FUSED.values(), ids=FUSED.keys()
)
def test_becomes_dilated(
    graph: Graph, operators: list[str], dilations: list[int], pads: list[int]
) -> None:
    model = check_operators(fuse_dilated_conv, graph.text(), operators, modes=("normal",))
    assert conv_of(model) == {"dilations": dilations, "pads": pads}


def test_space_to_depth_of_the_batch() -> None:
    body = """
        pads = Constant<value_ints=[0,0,1,2,0,0,2,1]>() cnhw = Transpose<perm=[1,0,2,3]>(x)
        a = Pad(cnhw, pads) b = SpaceToDepth<blocksize=2>(a) i = Transpose<perm=[1,0,2,3]>(b)
        c = Conv(i, w)
        d = Transpose<perm=[1,0,2,3]>(c) e = DepthToSpace<blocksize=2>(d)
        s = Constant<value_ints=[0,1]>() t = Constant<value_ints=[-1,2147483647]>()
        u = Constant<value_ints=[2,3]>() f = Slice(e, s, t, u) y = Transpose<perm=[1,0,2,3]>(f)"""
    model = check_operators(
        fuse_dilated_conv,
        f"g (float[N,2,7,9] x) => (float[N,4,5,9] y) <{tensor('w', (4, 2, 3, 2))}> {{ {body} }}",
        ["Transpose", "Transpose", "Conv", "Transpose", "Transpose"],
        modes=("normal",),
    )
    assert conv_of(model) == {"dilations": [2, 2], "pads": [1, 1, 1, 1]}


OUTSIDE = {
    "padding by another number": (
        Graph(value=", one"),
        ["CastLike", "Pad", *LAST, "Slice"],
        [0, 0, 0, 0],
    ),
    "crops that take more than the padding adds": (
        Graph((8, 10), (2, 2), (0, 0, 0, 0), (1, 0, 0, 1)),
        [*LAST, "Slice"],
        [0, 0, 0, 0],
    ),
    "padding by reflection": (
        Graph(mode='<mode="reflect">', crops=(0, 0, 0, 0)),
        ["Pad", *LAST],
        [0, 0, 0, 0],
    ),
}


@pytest.mark.parametrize(("graph", "operators", "pads"), OUTSIDE.values(), ids=OUTSIDE.keys())
def test_edges_of_another_kind_stay(graph: Graph, operators: list[str], pads: list[int]) -> None:
    source = graph.text().replace(
        "a = Pad(x, p, one)",
        "h = Constant<value_float=1.0>() one = CastLike(h, x) a = Pad(x, p, one)",
    )
    model = check_operators(fuse_dilated_conv, source, operators, modes=("normal",))
    assert conv_of(model) == {"dilations": [2, 2], "pads": pads}


@pytest.mark.parametrize("reader", ["a", "b", "c", "e"])
def test_an_inner_result_that_is_an_output(reader: str) -> None:
    """Outputs at the edges of the chain survive; an output inside keeps the whole chain."""
    source = Graph(batch="2").text(more=f", float[?,?,?,?] {reader}")
    model = text.parse(source)
    fired = run_pass(fuse_dilated_conv, model).rewrites
    assert fired == (1 if reader in "ae" else 0)


KEPT = {
    "an attribute that pads by itself": Graph(
        kernel=(1, 1), conv='Conv<auto_pad="SAME_LOWER">(i, w)'
    ).text(),
    "the blocks change places": Graph(
        (7, 7), padding=(2, 2, 3, 3), kernel=(3, 3), back=(1, 0)
    ).text(),
    "images of one row, which could as well be the batch": Graph(
        (2, 8), (2, 2), (0, 0, 0, 0), (0, 0, 0, 0), (1, 2), last=False
    ).text(),
    "no blocks": Graph(block=(1, 1)).text(),
    "parted and left so": "g (float[N,2,8,8] x) => (float[P,Q,R,S] y) "
    f"<{tensor('w', (4, 2, 3, 3))}> {{ {Graph((8, 8), (2, 2), (0, 0, 0, 0), last=False).part('b', 'x')} y = Conv(b, w) }}",
    "neighbouring rows kept together": "g (float[N,2,8] x) => (float[N,2,8] y) "
    f"<{tensor('w', (2, 2, 1))}> {{ m = Constant<value_ints=[-1,2,2,4]>() "
    "n = Constant<value_ints=[-1,2,4]>() a = Reshape(x, m) b = Transpose<perm=[2,0,1,3]>(a) "
    "i = Reshape(b, n) c = Conv(i, w) o = Constant<value_ints=[2,-1,2,4]>() d = Reshape(c, o) "
    "e = Transpose<perm=[1,2,0,3]>(d) q = Constant<value_ints=[-1,2,8]>() y = Reshape(e, q) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_dilated_conv, graph)


def test_strides() -> None:
    plain = Graph((8, 8), (2, 2), (0, 0, 0, 0), (0, 0, 0, 0), (3, 3)).text()
    for strides, pads, fused in (([1, 1], [0, 0, 0, 0], 1), ([2, 2], [1, 1, 0, 0], 0)):
        conv = f"Conv<strides={strides}, pads={pads}>(i, w)"
        model = text.parse(plain.replace("Conv(i, w)", conv))
        assert run_pass(fuse_dilated_conv, model).rewrites == fused


def test_every_order_of_the_blocks_in_the_batch() -> None:
    source = Graph((8, 8), (2, 2), (0, 0, 0, 0), (0, 0, 0, 0), (3, 3)).text()
    for order in itertools.permutations([2, 4, 0]):
        front = source.replace(
            "[2, 4, 0, 1, 3, 5]", f"[{order[0]}, {order[1]}, {order[2]}, 1, 3, 5]"
        )
        fits = list(order) == [2, 4, 0]
        assert run_pass(fuse_dilated_conv, text.parse(front)).rewrites == int(fits)
