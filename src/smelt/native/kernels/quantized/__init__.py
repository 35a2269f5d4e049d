"""What kernels of integers with scales and zero points share."""
