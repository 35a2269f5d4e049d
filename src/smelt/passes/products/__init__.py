"""Matrix products: fold neighbours of MatMul and Gemm into weight, bias or flags.

Attention, with a softmax between its products, does not belong here.
"""
