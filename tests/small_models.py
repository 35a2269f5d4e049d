"""Small models as ONNX text."""

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'
MODEL = HEADER + (
    "g (float[B,4] x) => (float[B,4] y) <float[4,4] w = "
    "{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}> { a = Identity(x)  h = MatMul(a, w)  y = Relu(h) }"
)
VARIED = {
    "convolutions": HEADER
    + """g (float[N,3,8,8] x) => (float[N,4] y) {
        z = Constant<value_ints = [0,0,1,1,0,0,1,1]>() q = Pad(x, z)
        w = Constant<value = float[4,3,1,1] {1,2,3,4,5,6,7,8,9,10,11,12}>()
        c = Conv<kernel_shape=[1,1], pads=[0,1,0,1], strides=[1,2], dilations=[1,1]>(q, w)
        b = Constant<value = float[4,1,1] {1,2,3,4}>() r = Add(c, b) h = Relu(r)
        m = MaxPool<kernel_shape=[2,2], pads=[0,0,1,1], ceil_mode=1>(h)
        a = AveragePool<kernel_shape=[2,2], auto_pad="SAME_UPPER">(m)
        p = GlobalAveragePool(a) s = Constant<value_ints = [0,-1]>() y = Reshape(p, s)
    }""",
    "attention": HEADER
    + """g (float[2,4] x, int64[2] i) => (float[2,4] y, float[2] z) {
        t = Transpose<perm=[1,0]>(x) m = MatMul(x, t) q = Softmax<axis=-1>(m) k = MatMul(q, x)
        g = Gather<axis=0>(k, i) one = Constant<value_ints = [1]>()
        r = ReduceMean<keepdims=0>(g, one) z = Neg(r) y = Add(k, x)
    }""",
    "branches": HEADER
    + """g (float[4] x, bool b) => (float[4] y) {
        y = If(b) <then_branch = t () => (float[4] p) { p = Relu(x) },
                   else_branch = e () => (float[4] q) { q = Neg(x) }>
    }""",
    "a loop": HEADER
    + """g (float[4] x) => (float[4] y, float[3,4] s) {
        n = Constant<value = int64 {3}>() c = Constant<value = bool {1}>()
        y, s = Loop(n, c, x) <body = l (int64 i, bool b, float[4] a) => (bool d, float[4] r, float[4] o) {
            d = Identity(b) r = Add(a, x) o = Neg(r)
        }>
    }""",
    "pieces": HEADER
    + """g (float[1,2,6] x) => (float[1,2,3] y, float[1,6] f) {
        z = Constant<value_ints = [0]>() o = Constant<value_ints = [3]>()
        a = Constant<value_ints = [2]>() s = Slice(x, z, o, a) c = Concat<axis=-1>(s, s)
        h = Constant<value_ints = [3,3]>() u, v = Split<axis=2>(c, h)
        e = Einsum<equation="abc,abc->abc">(u, v) k = Clip(e)
        p = Constant<value_ints = [0,0,0,0,0,0]>() y = Pad(k, p)
        t = Transpose<perm=[0,2,1]>(y) f = Flatten<axis=-2>(t)
    }""",
    "quantized": HEADER
    + """g (float[2,3] x) => (uint8[2,3] y, float[2,6] w, float[2,3] l) {
        s = Constant<value = float {0.5}>() z = Constant<value = uint8 {3}>()
        y = QuantizeLinear(x, s, z) d = DequantizeLinear<axis=0>(y, s, z)
        h = Constant<value_ints = [1,2]>() t = Tile(d, h)
        one = Constant<value_int = 1>() w = CumSum(t, one)
        l = LayerNormalization<axis=1, epsilon=0.001>(d, n) n = Constant<value_floats = [1.0,2.0,3.0]>()
    }""",
}
"""One of each of the kinds of operators that passes take apart."""
