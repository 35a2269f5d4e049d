"""Models that the demo compiles, and the demo."""
