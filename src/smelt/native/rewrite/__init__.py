"""Rewrites of programs: fusion, better kernels for this machine, bands that fit the arena."""
