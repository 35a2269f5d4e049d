"""Small decoders without and with past, as text; ``cross`` adds a cache that comes from an encoder."""

from smelt.ir import text

WEIGHT = ", ".join(str((7 * i % 64) / 16 - 2) for i in range(64))
TABLE = ", ".join(str((5 * i % 128) / 32 - 2) for i in range(128))
OPSET = 18

FIRST = """
decoder (int64[B,S] ids, int64[B,S] mask{inputs}) => (float[B,S,8] logits, float[B,S,8] present_self{outputs})
<float[16,8] table = {{{table}}}, float[8,8] w = {{{weight}}}, int64[1] one = {{1}}, int64[1] two = {{2}}> {{
    e = Gather(table, ids)
    present_self = MatMul(e, w)
    {body}
    f = Cast<to = 1>(mask)
    m = Unsqueeze(f, two)
    p = Mul({cache}, m)
    s = ReduceSum(p, one)
    logits = Add(e, s)
}}
"""
CACHED = """
decoder (int64[B,1] ids, int64[B,T] mask{inputs}, float[B,P,8] past_self{pasts}) => (float[B,1,8] logits, float[B,T,8] present_self)
<float[16,8] emb = {{{table}}}, float[8,8] k = {{{weight}}}, int64[1] one = {{1}}, int64[1] two = {{2}}> {{
    e = Gather(emb, ids)
    new = MatMul(e, k)
    present_self = Concat<axis = 1>(past_self, new)
    {body}
    f = Cast<to = 1>(mask)
    m = Unsqueeze(f, two)
    p = Mul({cache}, m)
    s = ReduceSum(p, one)
    logits = Add(e, s)
}}
"""


def decoders(cross=False, opsets=(OPSET, OPSET)):
    """Return both decoders."""
    made = []
    for form, opset in zip((FIRST, CACHED), opsets, strict=True):
        source = form.format(
            table=TABLE,
            weight=WEIGHT,
            inputs=", float[B,E,8] hidden" if cross else "",
            outputs=", float[B,E,8] present_cross" if cross and form is FIRST else "",
            pasts=", float[B,F,8] past_cross" if cross else "",
            body=_body(form is FIRST) if cross else "",
            cache="c" if cross else "present_self",
        )
        made.append(text.parse(source, opset))
    for model in made:
        for graph in model.graphs():
            for value in [*graph.inputs, *(v for node in graph for v in node.outputs)]:
                value.name = value.name.replace("past_", "past.0.").replace(
                    "present_", "present.0."
                )
    return tuple(made)


def _body(is_first):
    """The nodes that add the mean of the encoder's cache to the decoder's own cache."""
    cached = (
        "present_cross = MatMul(hidden, w)" if is_first else "present_cross = Identity(past_cross)"
    )
    return f"{cached}\n    g = ReduceMean<keepdims = 1>(present_cross, one)\n    c = Add(present_self, g)"
