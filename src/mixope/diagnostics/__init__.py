"""Diagnostics: can these logs carry the answer?"""

from mixope.diagnostics.checks import CHECKS, Diagnostic, Facts, Verdict, diagnose, verdict

__all__ = ["CHECKS", "Diagnostic", "Facts", "Verdict", "diagnose", "verdict"]
