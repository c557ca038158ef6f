"""mixope."""
