"""All estimators by name. To add one: a file, a line here; the generic tests find it. Packages add theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from mixope.base import plugins
from mixope.base.errors import UnknownName, UsageError
from mixope.estimators import state_action, state_ratio, trajectory
from mixope.estimators.asking import Asking
from mixope.estimators.doubly_robust import DoublyRobust, LstdQ
from mixope.estimators.kernel import KernelRatio
from mixope.estimators.latent_classes import LatentClasses
from mixope.estimators.learned import LearnedValue
from mixope.estimators.logged_mean import LoggedMean
from mixope.estimators.model import CertaintyEquivalence
from mixope.estimators.neural import NeuralRatio
from mixope.estimators.optimal_weights import opt_emp
from mixope.estimators.solution import Solution


@runtime_checkable
class Estimator(Protocol):
    """From a problem to a solution: at once, or as a generator that asks for sums over the logs on the way."""

    @property
    def name(self) -> str:
        """The name under which results show it."""
        ...

    def solve(self, problem: Any) -> Solution | Asking[Solution]:
        """Solve a problem on counts (:class:`~mixope.requests.problem.Problem`) or on features
        (:class:`~mixope.estimators.features.problem.FeatureProblem`)."""
        ...


LABELS = "labels"
PROPENSITIES = "propensities or policies"
BETTER_KNOWN = f"no; better with {PROPENSITIES}"
BETTER_WITH_POLICIES = f"{LABELS}; better with policies"


BOTH, COUNTS, FEATURES = frozenset({"counts", "features"}), frozenset({"counts"}), frozenset({"features"})


@dataclass(frozen=True)
class Entry:
    """How to make an estimator, one line on when to use it, what it must know of the loggers (None: nothing), and what
    it takes. The tables of ``README.md``, ``docs/estimators.md`` and ``mixope estimators`` are made of the same words.
    """

    make: Callable[..., Estimator]
    family: str
    when: str
    needs: str | None = None
    takes: frozenset[str] = BOTH
    slow: bool = False
    """Left out of "all": it is asked for by name."""
    by_logger: bool = False
    """Whether it treats the rows of each logger apart, so that it needs to know whose they are."""


REGISTRY: dict[str, Entry] = {
    "emp": Entry(
        state_ratio.emp, "state ratio", "behaviour unknown, one logger or several; the default for opaque states"
    ),
    "emp-single": Entry(
        state_ratio.emp_single,
        "state ratio",
        "to reproduce the paper: each logger alone, averaged",
        LABELS,
        by_logger=True,
    ),
    "kl-emp": Entry(
        state_ratio.kl_emp,
        "state ratio",
        "to reproduce the paper: loggers re-weighted by nearness to the target",
        LABELS,
        by_logger=True,
    ),
    "opt-emp": Entry(
        opt_emp,
        "state ratio",
        "loggers whose recorders differ in noise; otherwise it equals emp; not on vectors",
        LABELS,
        takes=COUNTS,
    ),
    "bch": Entry(state_ratio.bch, "state ratio", "one logger (several: each alone, averaged)", PROPENSITIES),
    "bch-pooled": Entry(state_ratio.bch_pooled, "state ratio", "several loggers, pooled", PROPENSITIES),
    "bch-kl-pooled": Entry(
        state_ratio.bch_kl_pooled,
        "state ratio",
        "to reproduce the paper's re-weighting",
        "propensities or policies, labels",
        by_logger=True,
    ),
    "known-mixture": Entry(
        state_ratio.known_mixture,
        "state ratio",
        "the loggers' policies are known",
        "policies and labels (for one logger, propensities suffice)",
    ),
    "kernel": Entry(
        KernelRatio,
        "state ratio",
        "vectors only: the paper's kernel form, a reference for logs of up to 3,000 rows",
        takes=FEATURES,
        slow=True,
    ),
    "emp-neural": Entry(
        NeuralRatio,
        "state ratio",
        "vectors only: the paper's network for the ratio (extra jax)",
        takes=FEATURES,
        slow=True,
    ),
    "sadl": Entry(state_action.sadl, "state–action ratio", "to compare with the paper's policy-agnostic rival"),
    "mwl": Entry(state_action.mwl, "state–action ratio", "to compare with minimax weight learning"),
    "dualdice": Entry(state_action.dualdice, "state–action ratio", "to compare with DualDICE"),
    "is": Entry(trajectory.importance_sampling, "trajectory weights", "episodes of a few steps", BETTER_KNOWN),
    "wis": Entry(trajectory.weighted, "trajectory weights", "episodes of a few steps", BETTER_KNOWN),
    "is-step": Entry(trajectory.stepwise, "trajectory weights", "short episodes", BETTER_KNOWN),
    "wis-step": Entry(trajectory.weighted_stepwise, "trajectory weights", "short episodes", BETTER_KNOWN),
    "mis": Entry(
        trajectory.multiple,
        "trajectory weights",
        "episodes of a few steps, several known loggers",
        BETTER_WITH_POLICIES,
    ),
    "mis-step": Entry(
        trajectory.multiple_stepwise,
        "trajectory weights",
        "short episodes, several known loggers",
        BETTER_WITH_POLICIES,
    ),
    "model": Entry(
        CertaintyEquivalence, "model", "a check on emp: the counted model, evaluated; not on vectors", takes=COUNTS
    ),
    "latent-classes": Entry(
        LatentClasses,
        "model",
        "users, patients or machines that differ for ever: a few classes of them, each with its own chain; not on"
        " vectors",
        takes=COUNTS,
    ),
    "fqe": Entry(
        LearnedValue,
        "value",
        "vectors or mixed columns: a value learned by networks, where weights are not supported",
        takes=FEATURES,
        slow=True,
    ),
    "lstdq": Entry(LstdQ, "value", "states with factors, or vectors; uses no ratio at all"),
    "dr": Entry(DoublyRobust, "doubly robust", "states with factors, or vectors: the default there"),
    "logged-mean": Entry(
        LoggedMean, "reference", "what the loggers earned: a reference line, not an estimate of the target"
    ),
}
ALIASES = {
    "doubly-robust": "dr",
    "ips": "is",
    "importance-sampling": "is",
    "snips": "wis",
    "weighted-importance-sampling": "wis",
    "pdis": "is-step",
    "fitted-q-evaluation": "fqe",
    "dual-dice": "dualdice",
}
"""Names that other programs and papers use, and ours."""
plugins.reserve("estimators", [*REGISTRY, "auto", "all"])


def entries() -> dict[str, Entry]:
    """Ours, then those of packages that are installed (:mod:`mixope.base.plugins`)."""
    return {**REGISTRY, **{name: _added(name) for name in plugins.added("estimators")}}


def _added(name: str) -> Entry:
    found = plugins.load("estimators", name)
    if not isinstance(found, Entry):
        package = plugins.package_of(plugins.added("estimators")[name])
        raise UsageError(f"{name!r} of {package} is no Entry, but {type(found).__name__}. Update that package.")
    return found


def canonical(estimator: Any) -> Any:
    """Our name for an estimator, however it is spelt: "DR", "doubly_robust" and "dr" are one. What is no name, or is
    not known, stays as it is."""
    if not isinstance(estimator, str) or estimator in REGISTRY:
        return estimator
    spelt = estimator.strip().lower().replace("_", "-").replace(" ", "-")
    known = entries()
    name = ALIASES.get(spelt, spelt)
    return name if estimator not in known and name in {*known, "auto", "all"} else estimator


def entry_of(name: str) -> Entry | None:
    """What is known of an estimator, ours or of a package; None for one that is not registered."""
    return REGISTRY[name] if name in REGISTRY else entries().get(name)


def make(estimator: str | Estimator) -> Estimator:
    """An estimator by name, or an object as it is."""
    if not isinstance(estimator, str):
        if not isinstance(estimator, Estimator):
            raise UsageError(
                f"expected an estimator (an object with a name and a solve method) or a name, got {estimator!r}"
            )
        return estimator
    entry = entry_of(canonical(estimator))
    if entry is None:
        raise UnknownName("estimator", estimator, [*entries(), "auto"])
    return entry.make()


def ignores_loggers(estimator: Estimator) -> bool:
    """Whether it solves counts the same way whoever logged which row; one that does not say so may look at labels."""
    return bool(getattr(estimator, "ignores_loggers", False))


def check_takes(estimator: Estimator, kind: str) -> None:
    """Refuse a registered estimator that does not exist for counts, or for features."""
    entry = entry_of(estimator.name)
    if entry is None or kind in entry.takes:
        return
    counts = "needs states that can be counted; these logs have vectors. Use 'dr' or 'emp'"
    features = "works on features of states, and these are counted. Use 'dr' or 'emp', or give features"
    raise UsageError(f"{estimator.name!r} {counts if kind == 'features' else features}")
