"""The paper's claims and open questions, a line each: claim, environment, number, and what the number says.

How much is measured is decided here; what, in :mod:`~mixope.paper.claim_measurements`; which numbers a claim is
about, in :mod:`~mixope.paper.claim_findings`; what they mean is told in docs/claims.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mixope.paper.claim_findings import CLAIMS, Measured, draw_claims
from mixope.paper.claim_measurements import PAPER, Change, ClaimLog, ClaimTruth
from mixope.paper.experiment import Exhibit, Repetition, Row, Size

HORIZON = 200
ONE = "emp,bch,sadl,dualdice"
SMALL = f"emp,emp{PAPER},bch,sadl,dualdice"
SEVERAL = "emp,emp-single,kl-emp,opt-emp,bch,bch-pooled,bch-kl-pooled,known-mixture,sadl"
STEPS = "emp,bch,is-step,wis-step"
WEIGHED = "emp,opt-emp,kl-emp"


@dataclass(frozen=True)
class ClaimLogs:
    """Logs of one environment: all sizes and horizons with all methods."""

    environment: str
    loggers: int
    episodes: tuple[int, ...]
    methods: str
    repetitions: int
    horizons: tuple[int, ...] = (HORIZON,)
    gamma: float = 0.0
    change: Change = ""
    bumps: int = 0


@dataclass(frozen=True)
class ClaimSettings:
    """Exact questions (question, environment, loggers), and logs."""

    truths: tuple[tuple[str, str, int], ...]
    batches: tuple[ClaimLogs, ...]


def _truths(*names: str) -> tuple[tuple[str, str, int], ...]:
    """All exact questions; those that need a solve a state are for small environments."""
    small = tuple(name for name in names if name != "taxi")
    return (
        *(("first order", name, n) for name in names for n in (1, 4)),
        *(("ratio", name, 1) for name in small),
        ("mixture", "two states", 2),
        *(("balance", name, 4) for name in names),
        *((question, name, 4) for question in ("coarse", "drift") for name in small),
        *(("uncovered", name, 1) for name in small),
    )


def _small(name: str, episodes: tuple[int, ...], repetitions: int) -> tuple[ClaimLogs, ...]:
    """What a small environment is asked."""
    last = episodes[-2:]
    discounted = [ClaimLogs(name, 1, last[:1], "emp,dualdice", repetitions // 2, gamma=g) for g in (0.9, 0.99)]
    return (
        ClaimLogs(name, 1, episodes, SMALL, repetitions),
        ClaimLogs(name, 4, episodes, SEVERAL, repetitions),
        ClaimLogs(name, 1, (100,), STEPS, repetitions // 2, horizons=(10, 40, 160)),
        ClaimLogs(name, 4, last[:1], WEIGHED, repetitions, change="noise"),
        ClaimLogs(name, 4, last[:1], WEIGHED, repetitions // 2, change="drift"),
        *discounted,
    )


SIZES: dict[Size, ClaimSettings] = {
    "smoke": ClaimSettings(
        (("first order", "singlepath", 1), ("first order", "singlepath", 4), ("mixture", "two states", 2)),
        _small("singlepath", (12, 24), 4),
    ),
    "quick": ClaimSettings(
        _truths("singlepath", "gridworld-slip"),
        (
            *_small("singlepath", (12, 50, 200), 10),
            *_small("gridworld-slip", (12, 50, 200), 10),
            ClaimLogs("taxi", 1, (50,), ONE, 4),
            ClaimLogs("taxi", 4, (50,), SEVERAL, 4),
        ),
    ),
    "full": ClaimSettings(
        _truths("singlepath", "gridworld-slip", "taxi"),
        (
            *_small("singlepath", (12, 50, 200), 60),
            *_small("gridworld-slip", (12, 50, 200), 60),
            *(ClaimLogs(name, 1, (800,), SMALL, 40) for name in ("singlepath", "gridworld-slip")),
            *(ClaimLogs(name, 4, (800,), SEVERAL, 40) for name in ("singlepath", "gridworld-slip")),
            ClaimLogs("taxi", 1, (50, 200, 800), ONE, 40),
            ClaimLogs("taxi", 1, (3200,), ONE, 20),
            ClaimLogs("taxi", 4, (50, 200, 800), SEVERAL, 40),
            ClaimLogs("taxi", 4, (3200,), SEVERAL, 16),
            ClaimLogs("taxi", 1, (50, 200, 800), f"emp{PAPER}", 6),
            ClaimLogs("taxi", 1, (100,), STEPS, 24, horizons=(10, 40, 160)),
            *(ClaimLogs("taxi", 1, (50, 200), "emp,dualdice", 16, gamma=g) for g in (0.9, 0.99)),
            *(ClaimLogs("pendulum", 1, (50,), "emp,dualdice", 7, gamma=g) for g in (0.0, 0.9, 0.99)),
            ClaimLogs("pendulum", 4, (50,), "emp,kl-emp", 5, bumps=12),
        ),
    ),
}


def plan(settings: ClaimSettings, seed: int) -> list[Repetition]:
    """Exact ones first, then the logs by number of the repetition."""
    exact = [ClaimTruth(question, name, n, HORIZON) for question, name, n in settings.truths]
    logs = [
        ClaimLog(b.environment, b.loggers, m, h, b.methods, b.gamma, b.change, b.bumps, seed, k)
        for k in range(max(b.repetitions for b in settings.batches))
        for b in settings.batches
        for m in b.episodes
        for h in b.horizons
        if k < b.repetitions
    ]
    return [*exact, *logs]


def summarise(settings: ClaimSettings, rows: Sequence[Row]) -> list[Row]:
    """All lines of all claims."""
    return [made for claim in CLAIMS for made in claim(Measured(rows))]


EXPERIMENT = Exhibit(
    name="claims",
    title="The paper's claims, tested",
    caption="Each line is a number that a claim is about: exact first-order variances, or ratios of mean squared "
    "errors of two methods on the same simulated logs (± one standard error). 'holds' and 'does not' are beyond three "
    "standard errors. Above 1 the method named first is the worse one. In the picture, dashed lines are the "
    "limits that first-order variances give.",
    sizes=SIZES,
    plan=plan,
    summarise=summarise,
    draw=draw_claims,
)
