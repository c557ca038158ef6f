"""A session: logs, the engine that reads them, and what the first scan found; the problem it makes of a question."""

from __future__ import annotations

from mixope.session.session import Counted, Sampled, Session, count, first_count, first_scan, look, no_rows, sample

__all__ = ["Counted", "Sampled", "Session", "count", "first_count", "first_scan", "look", "no_rows", "sample"]
