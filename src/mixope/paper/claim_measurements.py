"""What the claims are measured by: simulated logs, and questions that need no simulation.

:class:`ClaimLog` is a log, and the error of every method asked for. ``change`` is what the last logger's recorder does
to rewards: nothing, ``noise`` (an independent normal error of SPREAD standard deviations of the logged rewards) or
``drift`` (a constant of one standard deviation). :class:`ClaimTruth` is answered exactly:

first order   lim N × variance ÷ EMP's, for every relative of EMP (:mod:`mixope.worlds.first_order`), with
              KL weights, and at the best weights by logger that a search finds
ratio         the same for the estimate of d_π(s), state by state
mixture       two states in which the exact mixture policy beats the estimated one
balance       MIS with the balance heuristic against pooled weights row by row, and against the best heuristic
uncovered     a logger that covers next to nothing: its rows dropped against its rows kept
coarse        EMP on merged states: its bias by logger weights
drift         EMP where one recorder is shifted: its bias
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from mixope import worlds
from mixope.answers.answering import answer
from mixope.base.arrays import FloatArray, IntArray
from mixope.base.estimand import Estimand
from mixope.estimators import REGISTRY
from mixope.features import NormalisedBumps
from mixope.paper.cases import PENDULUM, PaperCase, log_seed, world
from mixope.paper.experiment import Row
from mixope.session.session import look
from mixope.worlds import Model, efficiency_bound, from_outcomes, logged_law, paper_form_bias, pendulum
from mixope.worlds.first_order import ESTIMATORS, FutureLogs, asymptotic_variance, sum_variance

Change = Literal["", "noise", "drift"]
SPREAD = 3.0
PAPER = ":paper"
"""After the name of a method: the paper's form of it."""


@dataclass(frozen=True)
class ClaimLog:
    """``methods`` with commas between; ``gamma`` 0 is the average; ``bumps`` features for vectors (0: the default)."""

    environment: str
    loggers: int
    episodes: int
    horizon: int
    methods: str
    gamma: float
    change: Change
    bumps: int
    seed: int
    repetition: int

    @property
    def seconds(self) -> float:
        """Measured 2026-11-15, one core."""
        rows, methods = self.episodes * self.horizon, self.methods.count(",") + 1
        if self.environment == PENDULUM:
            return methods * (0.3 + rows / 6000)
        return 0.01 + rows / 400_000 + methods * (0.004 + rows / 3_000_000)

    def measure(self) -> list[Row]:
        """One row per method: its error, and the least variance that there can be."""
        here = world(self.environment, self.loggers)
        told = self.environment, self.loggers, self.episodes, self.horizon, self.change
        seed = log_seed(self.seed, self.repetition, *told)
        logs = here.simulate(self.episodes, self.horizon, seed)
        if self.change:
            logs = {**logs, "reward": logs["reward"] + self._disturbance(here, logs, seed)}
        truth = true_value(self.environment, self.loggers, self.gamma)
        found = self._values(here, logs)
        return [{"method": name, "error": None if value is None else value - truth} for name, value in found.items()]

    def _values(self, here: PaperCase, logs: Any) -> dict[str, float | None]:
        seen = look(logs, features=NormalisedBumps(self.bumps) if self.bumps else None)
        estimand = Estimand("discounted", gamma=self.gamma) if self.gamma else Estimand("average")
        names = self.methods.split(",")
        values: dict[str, float | None] = dict.fromkeys(names)
        for forms in ([n for n in names if not n.endswith(PAPER)], [n for n in names if n.endswith(PAPER)]):
            made = [REGISTRY[n.removesuffix(PAPER)].make(form="paper") if n.endswith(PAPER) else n for n in forms]
            targets = {"target": here.target}
            for estimate in answer(seen, targets, made, estimand=estimand, loggers=here.loggers, skipped=[]):
                (name,) = (n for n in forms if n.removesuffix(PAPER) == estimate.estimator)
                values[name] = estimate.value
        return values

    def _disturbance(self, here: PaperCase, logs: Any, seed: int) -> FloatArray:
        mine = logs["policy_id"] == f"logger-{self.loggers - 1}"
        scale = reward_spread(here, self.horizon)
        if self.change == "drift":
            return np.where(mine, scale, 0.0)
        return np.where(mine, SPREAD * scale * np.random.default_rng([seed, 1]).normal(size=len(mine)), 0.0)


@lru_cache(maxsize=64)
def true_value(environment: str, loggers: int, gamma: float) -> float:
    """The average (gamma 0) or the discounted value of the target."""
    here = world(environment, loggers)
    if not gamma:
        return here.truth
    if here.model is None:
        return pendulum.discounted_truth(here.target, gamma).value
    return worlds.truth.discounted(here.model, here.target.probabilities, gamma)


def reward_spread(here: PaperCase, horizon: int) -> float:
    """The standard deviation of a logged reward, exact."""
    d0 = worlds.logged_law(here.known, here.laws, horizon)
    first, second = ((d0 * here.known.expected(here.known.reward**k)).sum() for k in (1, 2))
    return float(np.sqrt(second - first**2))


@dataclass(frozen=True)
class ClaimTruth:
    """One question about one environment, answered exactly."""

    question: str
    environment: str
    loggers: int
    horizon: int

    @property
    def seconds(self) -> float:
        """Measured 2026-11-15, one core."""
        return (25.0 if self.loggers > 1 else 4.0) if self.environment == "taxi" else 2.0

    def measure(self) -> list[Row]:
        """Rows of quantity and number."""
        return [{"quantity": name, "number": number} for name, number in QUESTIONS[self.question](self).items()]

    def setting(self) -> FutureLogs:
        """Model, target, loggers."""
        here = world(self.environment, self.loggers)
        return FutureLogs(here.known, here.target.probabilities, here.laws, self.horizon)


def _first_order(asked: ClaimTruth) -> dict[str, float]:
    setting = asked.setting()
    emp = asymptotic_variance(setting, "emp")
    found = {name: asymptotic_variance(setting, name) / emp for name in ESTIMATORS}
    bound = efficiency_bound(setting.model, setting.target, setting.loggers, horizon=asked.horizon)
    found |= {"emp ÷ bound": emp / bound}
    if asked.loggers > 1:
        weights = kl_limit(setting)
        found |= {"kl-emp": asymptotic_variance(setting, "emp", weights) / emp}
        found |= {"bch-kl-pooled": asymptotic_variance(setting, "bch-pooled", weights) / emp}
        found |= _best_weights(setting, "")
        noisy = replace(setting, noise=_noise(asked))
        found |= _best_weights(noisy, "noise, ")
    elif not setting.model.ends:
        found |= {
            "paper form bias": paper_form_bias(setting.model, setting.target, setting.loggers, horizon=asked.horizon)
        }
    return found


def _noise(asked: ClaimTruth) -> list[float]:
    """Of the recorder of the last logger only."""
    spread = SPREAD * reward_spread(world(asked.environment, asked.loggers), asked.horizon)
    return [0.0] * (asked.loggers - 1) + [spread**2]


def _best_weights(setting: FutureLogs, prefix: str) -> dict[str, float]:
    """The least variance over weights by logger, found by a search from unequal weights, against the pooled one."""
    from scipy.optimize import minimize

    law, needed = setting.row_law[:, :, None] * setting.policies, setting.needed
    epsilon = setting.model.expected(setting.advantage_return**2) - setting.q**2
    noise = np.zeros(len(law)) if setting.noise is None else np.asarray(setting.noise)
    spread = epsilon[None] + noise[:, None, None]

    def variance(t: FloatArray) -> float:
        c = np.exp(np.append(0.0, t))
        pooled = np.einsum("j,jsa->sa", c, law)
        terms = np.divide(needed**2, pooled**2, out=np.zeros_like(pooled), where=pooled > 0)
        return float(np.log((terms * np.einsum("j,jsa->sa", c**2, law * spread)).sum()))

    start = np.linspace(-1.0, 1.0, len(law) - 1)
    best = minimize(variance, start, method="L-BFGS-B", bounds=[(-8.0, 8.0)] * len(start), options={"gtol": 1e-9})
    weights = np.exp(np.append(0.0, best.x))
    pooled = asymptotic_variance(setting, "emp")
    return {
        f"{prefix}best weights": asymptotic_variance(setting, "emp", weights.tolist()) / pooled,
        f"{prefix}weight of the last logger": float(weights[-1] / np.median(weights[:-1])),
        f"{prefix}pooled variance": pooled,
    }


def kl_limit(setting: FutureLogs) -> list[float]:
    """c = w^KL/w with true policies, all visited states: what the weights of KL-EMP tend to."""
    visited = setting.row_law.sum(axis=0) > 0
    target = setting.model.checked_policy(setting.target)[visited]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(target > 0, target * (np.log(target) - np.log(setting.policies[:, visited])), 0.0)
    nearest = terms.sum(axis=2).argmin(axis=0)
    wanted = np.bincount(nearest, minlength=len(setting.loggers)) / len(nearest)
    return list(map(float, wanted / setting.row_law.sum(axis=1)))


def _ratio(asked: ClaimTruth) -> dict[str, float]:
    """Var of the estimated d_π(k) is the variance of a value whose reward is 1 in state k."""
    setting = asked.setting()
    found = np.zeros((2, setting.model.n_states))
    for k in range(setting.model.n_states):
        reward = (setting.model.entry_rows() // setting.model.n_actions == k).astype(np.float64)
        mine = replace(setting, model=replace(setting.model, reward=reward))
        found[:, k] = [asymptotic_variance(mine, name) for name in ("emp", "bch-pooled, uncalibrated")]
    emp, bch = found[:, found[0] > 0]
    return {"Σ_s": float(bch.sum() / emp.sum()), "least s": float((bch / emp).min())}


def two_states() -> FutureLogs:
    """Two opposite loggers: where the logs are says much about the transitions, and the mixture policy tells it."""
    forward = np.array([[0.1, 0.3], [0.1, 0.9]])
    s, a, t = (index.ravel() for index in np.indices((2, 2, 2)))
    model = from_outcomes(
        "two states",
        shape=(2, 2),
        state=s,
        action=a,
        next_state=t,
        probability=np.where(t == 1, forward[s, a], 1 - forward[s, a]),
        reward=np.array([0, 1, 0, 1, 1, 0, 1, 1], dtype=np.float64),
        start=np.array([0.5, 0.5]),
    )
    target, *loggers = (np.stack([1 - np.array(p), np.array(p)], axis=1) for p in ((0.3, 0.7), (0.9, 0.9), (0.1, 0.1)))
    return FutureLogs(model, target, loggers, 20)


def _mixture(asked: ClaimTruth) -> dict[str, float]:
    setting = replace(two_states(), horizon=asked.horizon)
    emp = asymptotic_variance(setting, "emp")
    names = ("exact mixture", "exact mixture, uncalibrated", "known-mixture", "bch-pooled")
    return {name: asymptotic_variance(setting, name) / emp for name in names}


def _balance(asked: ClaimTruth) -> dict[str, float]:
    """f = d_π(s) π(a|s) r(s,a) under the laws m_j of the rows, drawn independently as Proposition 4 has it."""
    setting = asked.setting()
    m, n = setting.row_law.sum(axis=1), len(setting.loggers)
    laws = (setting.row_law[:, :, None] * setting.policies / m[:, None, None]).reshape(n, -1)
    reward = setting.model.expected_reward()
    f = (setting.needed * reward).ravel()
    pooled = m @ laws
    balance = np.divide(m[:, None] * laws, pooled, out=np.zeros_like(laws), where=pooled > 0)
    rows = np.divide(balance * f, m[:, None] * laws, out=np.zeros_like(laws), where=laws > 0)
    direct = np.divide(f, pooled, out=np.zeros_like(f), where=pooled > 0)
    apart = np.abs(np.where(laws > 0, rows - direct, 0.0)).max() / np.abs(direct).max()
    oracle = sum(
        b * sum_variance(setting.model, policy, _oracle_score(setting), asked.horizon)
        for b, policy in zip(setting.episode_shares, setting.loggers, strict=True)
    )
    return {
        "largest difference of a row": float(apart),
        "balance ÷ best heuristic": _variance(balance, f, laws, m) / _best_variance(f, laws, m),
        "MIS with true ratios ÷ emp": float(oracle / setting.rows_an_episode / asymptotic_variance(setting, "emp")),
    }


def _oracle_score(setting: FutureLogs) -> FloatArray:
    """(d_π/d₀)(s,a) · (r − η): true ratios, normalised to mean 1."""
    law = np.einsum("js,jsa->sa", setting.row_law, setting.policies)
    weight = np.divide(setting.needed, law, out=np.zeros_like(law), where=law > 0).ravel()
    return np.asarray(weight[setting.model.entry_rows()] * (setting.model.reward - setting.truth.average))


def _variance(h: FloatArray, f: FloatArray, laws: FloatArray, m: FloatArray) -> float:
    """N × variance of Σ_j (1/N_j) Σ_rows h_j f/law_j, rows independent."""
    terms = np.divide(h**2 * f**2, laws, out=np.zeros_like(laws), where=laws > 0).sum(axis=1) - (h @ f) ** 2
    return float((terms / m).sum())


def _best_variance(f: FloatArray, laws: FloatArray, m: FloatArray) -> float:
    """Over all partitions of unity, negative parts allowed (Kondapaneni et al. 2019): one small solve.

    With A_jk = Σ law_j law_k / pooled and b_j = Σ law_j f / pooled, A α = b: the best there is is the balance
    heuristic on f − Σ_j α_j law_j, whose integral Σ α is known.
    """
    pooled = m @ laws
    inside = pooled > 0
    A = (laws[:, inside] / pooled[inside]) @ laws[:, inside].T
    alpha = np.linalg.lstsq(A, (laws[:, inside] / pooled[inside]) @ f[inside], rcond=None)[0]
    rest = f - alpha @ laws
    balance = np.divide(m[:, None] * laws, pooled, out=np.zeros_like(laws), where=inside)
    return _variance(balance, rest, laws, m)


def _uncovered(asked: ClaimTruth) -> dict[str, float]:
    """The last logger always takes action 0."""
    setting = asked.setting()
    stuck = np.eye(setting.model.n_actions)[np.zeros(setting.model.n_states, dtype=int)]
    both = replace(setting, loggers=[*setting.loggers, stuck])
    weights = [1.0] * len(setting.loggers)
    pooled = asymptotic_variance(both, "emp")
    dropped = asymptotic_variance(both, "emp", [*weights, 0.0])
    halved = asymptotic_variance(both, "emp", [*weights, 0.5])
    return {"dropped ÷ pooled": dropped / pooled, "halved ÷ pooled": halved / pooled}


def _coarse(asked: ClaimTruth) -> dict[str, float]:
    """The bias of EMP on pairs of merged states (2k and 2k+1), for a target that does not tell them apart."""
    setting = asked.setting()
    model = setting.model
    group: IntArray = np.arange(model.n_states, dtype=np.int64) // 2
    merged = np.stack([setting.target[group == g].mean(axis=0) for g in range(group.max() + 1)])
    truth = worlds.truth.average(model, merged[group])

    def bias(weights: FloatArray) -> float:
        return (
            _coarse_value(model, merged, group, np.einsum("j,js,jsa->sa", weights, setting.row_law, setting.policies))
            - truth
        )

    n = len(setting.loggers)
    grid = np.random.default_rng(0).dirichlet(np.full(n, 0.5), size=400)
    found = np.array([bias(w) for w in grid])
    return {"pooled": bias(np.ones(n)), "lowest": float(found.min()), "highest": float(found.max())}


def _coarse_value(model: Model, target: FloatArray, group: IntArray, law: FloatArray) -> float:
    """What EMP tends to when it sees the group of a state only."""
    n, actions = len(target), model.n_actions
    number = np.arange(model.n_states * actions)
    cell = group[number // actions] * actions + number % actions
    mass = law.ravel()
    total = np.bincount(cell, mass)
    P = np.zeros((n * actions, n))
    entry, following = model.entry_rows(), group[model.transition.indices]
    np.add.at(P, (cell[entry], following), mass[entry] * model.transition.data)
    reward = np.bincount(cell, mass * model.expected_reward().ravel()) / total
    step = np.einsum("ga,gah->gh", target, (P / total[:, None]).reshape(n, actions, n))
    system = np.vstack([step.T - np.eye(n), np.ones(n)])
    stationary = np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0]
    return float(stationary @ (target * reward.reshape(n, actions)).sum(axis=1))


def _drift(asked: ClaimTruth) -> dict[str, float]:
    """Rewards of the last logger are too high by ``shift``: Σ d_π(s,a) p_last(s,a) of it is in the pooled estimate."""
    setting = asked.setting()
    last = setting.row_law[-1][:, None] * setting.policies[-1]
    d0 = logged_law(setting.model, setting.loggers, asked.horizon)
    share = np.divide(last, d0, out=np.zeros_like(d0), where=d0 > 0)
    shift = reward_spread(world(asked.environment, asked.loggers), asked.horizon)
    return {"shift": shift, "bias of emp": float(shift * (setting.needed * share).sum())}


QUESTIONS: dict[str, Callable[[ClaimTruth], dict[str, float]]] = {
    "first order": _first_order,
    "ratio": _ratio,
    "mixture": _mixture,
    "balance": _balance,
    "uncovered": _uncovered,
    "coarse": _coarse,
    "drift": _drift,
}
