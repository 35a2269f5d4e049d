"""The backend ``smelt`` of ``torch.compile``, for inference on the CPU.

PyTorch finds it by the entry point ``torch_dynamo_backends``, so a program imports nothing::

    compiled = torch.compile(model, backend="smelt")
    with torch.no_grad():
        compiled(x)
"""
