"""Fast Fourier transforms: plans, their tables, and C for each step."""
