"""What stands beside an estimate stands once on a page."""

from __future__ import annotations

from dataclasses import replace

from mixope.differences import Comparison
from mixope.report.document import document

from .records import estimate


def test_a_companion_that_was_asked_for_too_is_shown_once():
    emp = replace(estimate(), estimator="emp", beside=())
    dr = replace(estimate(), estimator="dr", beside=(emp,))
    shown = [found.estimator for found, _ in document(Comparison((dr, emp))).rows]
    assert sorted(shown) == ["dr", "emp"]


def test_two_that_were_asked_for_under_one_name_are_both_shown():
    general = replace(estimate(), estimator="emp", beside=())
    paper = replace(general, value=2.0)
    assert len(document(Comparison((general, paper))).rows) == 2
