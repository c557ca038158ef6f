"""A check: whether nearly all rows have one and the same action, so that the logs tell little of the others."""

from mixope.checks import Check
from mixope.requests.grouping import Aggregate, Grouped, Grouping

WARN, FAIL = 0.9, 0.999


def needs(schema):
    """How often every action was taken; of numbers nothing."""
    return [Grouped(Grouping(schema.action, (Aggregate("rows", "count"),)))] if schema.action_kind == "discrete" else []


def judge(evidence):
    """The share of the commonest."""
    answers = evidence.answers[CHECK.name]
    if not answers:
        return None
    rows = answers[0].column("rows")
    share = float(rows.max() / rows.sum())
    return CHECK.graded(share, WARN, FAIL, f"{share:.1%} of the rows have the commonest action")


CHECK = Check(
    "one action",
    "coverage",
    "https://example.org/one-action",
    "log other actions, too",
    judge_logs=judge,
    needs=needs,
)
