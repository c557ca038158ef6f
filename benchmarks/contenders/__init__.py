"""Ideas from the literature that might beat ``auto``: stationary-weighted values, truncated weights, blends."""
