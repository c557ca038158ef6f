"""Reports: records in, something to read out."""

from mixope.report.text import comparison_text, estimate_text

__all__ = ["comparison_text", "estimate_text"]
