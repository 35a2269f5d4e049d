"""Products of matrices: what stands around MatMul and Gemm goes into weight, bias or flags.

Attention does not belong here: a softmax stands between its products.
"""
