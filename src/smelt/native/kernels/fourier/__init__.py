"""Fast transforms of Fourier: plans, their tables, and C for each step."""
