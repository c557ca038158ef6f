"""The question put to an estimator: encoded logs, the target's probabilities, the estimand, the loggers known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray, IntArray, sum_by
from mixope.base.errors import Advice, DataError, Setting, UsageError, must_fit
from mixope.base.estimand import Estimand
from mixope.policies.laws import check_totals
from mixope.policies.own_code import asking
from mixope.policies.protocol import DiscretePolicy, Policy
from mixope.requests.followed import Followed, follow_up
from mixope.requests.grouping import Grouped, Lookup
from mixope.requests.scores import ScoreTable
from mixope.requests.trajectories import NumberedSteps
from mixope.requests.transitions import Transitions, restrict

T = TypeVar("T")


@dataclass(frozen=True)
class Problem:
    """Everything an estimator may look at; it never opens a file."""

    transitions: Transitions
    target: Policy
    estimand: Estimand = field(default_factory=Estimand)
    loggers: Mapping[str, Policy] = field(default_factory=dict)
    start_law: FloatArray | None = None
    seed: int = 0
    numbers: Lookup | None = field(default=None, repr=False, compare=False)
    """The number of every transition, by its raw values: what a request for whole episodes needs."""
    by_episode: Grouped | None = field(default=None, repr=False, compare=False)
    """The request for how often every episode had each transition."""
    whole: Problem | None = field(default=None, repr=False, compare=False)
    """The question of which this is a part: its target has been asked about all pairs already."""
    followed: Followed | None = field(default=None, repr=False, compare=False)
    """Where the transitions come from, if after some of the logged rows nobody knows what came."""
    piece_steps: int | None = None
    """1 where scores of single steps are wanted besides, for blocks of them."""
    reader: Reader | None = field(default=None, repr=False, compare=False)
    """What whoever asks wants to read off a solution on counts while the flow behind it is there."""
    kind: ClassVar[str] = "counts"
    """What an estimator takes that can solve it."""

    @property
    def counted(self) -> Problem | None:
        """Itself: states are counted."""
        return self

    def either(self, on_counts: Callable[[Problem], T], on_features: Callable[[Any], T]) -> T:
        """Of what is to be done on counts and what on features, the one that applies, done."""
        return on_counts(self)

    @classmethod
    def of_logged(
        cls,
        logged: Transitions,
        target: Policy,
        estimand: Estimand | None = None,
        loggers: Mapping[str, Policy] | None = None,
        **options: Any,
    ) -> Problem:
        """The question put to the groups as they were logged."""
        asked = estimand or Estimand()
        followed = follow_up(logged, to_the_last=asked.horizon is not None)
        rows = logged if followed is None else followed.transitions
        if rows.n_groups == 0:
            raise DataError(
                "no row can be used: after none of them it is known what came",
                expected="rows with a next observation, or a terminated end",
                hint=Advice(
                    "ask for the steps that were logged: ",
                    Setting("horizon", 1),
                    "; or say that they ended their episodes: ",
                    Setting("ends", "terminated"),
                    " where the logs are read",
                ),
            )
        return cls(rows, target, asked, loggers or {}, followed=followed, **options)

    def with_counts(self, logged: Transitions) -> Problem:
        """The same question put to other counts of the same groups, or to some of them."""
        followed = follow_up(logged, to_the_last=self.estimand.horizon is not None)
        return replace(self, transitions=logged if followed is None else followed.transitions, followed=followed)

    @property
    def logged(self) -> Transitions:
        """All rows as they were logged: what trajectories are made of."""
        return self.transitions if self.followed is None else self.followed.logged

    @cached_property
    def logged_target(self) -> FloatArray:
        """π(a|s) on the pairs of these."""
        return self.pair_target if self.followed is None else pair_probabilities(self.target, self.logged, "the target")

    def steps_in_order(self) -> NumberedSteps:
        """The request for the transition of every row, in whole episodes."""
        if self.numbers is None:
            raise UsageError("this problem was made from counts alone and cannot ask for whole episodes")
        return NumberedSteps(self.numbers)

    def counts_by_episode(self) -> Grouped:
        """The request for how often every episode had each transition."""
        if self.by_episode is None:
            raise UsageError("this problem was made from counts alone and cannot ask for those of every episode")
        return self.by_episode

    @cached_property
    def pair_target(self) -> FloatArray:
        """π(a|s) on the logged pairs; a part reads off what the whole was told."""
        if (whole := self._told) is None:
            return pair_probabilities(self.target, self.transitions, "the target")
        return whole.pair_target[np.searchsorted(whole.transitions.pair_code, self.transitions.pair_code)]

    @cached_property
    def state_target(self) -> FloatArray:
        """π(a|s) for every state and every logged action: shape (states, actions)."""
        if (whole := self._told) is not None:
            return whole.state_target
        shape = self.transitions.n_states, len(self.transitions.actions)
        must_fit("the target's law in every state", shape, "Use 'emp', which asks for logged pairs only")
        return state_probabilities(self.target, self.transitions)

    @property
    def _told(self) -> Problem | None:
        return self.whole if self.whole is not None and self.whole.target is self.target else None

    def on_groups(self, groups: IntArray) -> Problem:
        """The same question on a part of the groups; states keep their numbers."""
        return replace(self, transitions=restrict(self.transitions, groups), whole=self._told or self)

    def asking(self, estimand: Estimand) -> Problem:
        """The same rows and target with another estimand; the target is not asked again."""
        return replace(self, estimand=estimand, whole=self._told or self)

    def once(self, make: Callable[[Problem], T]) -> T:
        """``make(self)``, kept: what estimators and checks alike derive from a question is derived once."""
        if make not in self._kept:
            self._kept[make] = make(self)
        found: T = self._kept[make]
        return found

    def forget(self) -> None:
        """Drop what was kept. It refers back to the question: memory would be freed late."""
        self._kept.clear()

    def forget_before(self, requests: Sequence[Any]) -> None:
        """Drop what nobody needs once these are asked: the flow, if they are scores, which are the last to be asked."""
        if all(isinstance(request, ScoreTable) for request in requests):
            self.forget()

    @property
    def leaves_propensities(self) -> bool:
        """Whether propensities were recorded, and it should be said that they are not used: not of counted actions."""
        return False

    @cached_property
    def _kept(self) -> dict[Callable[[Problem], Any], Any]:
        return {}

    @property
    def knows_starts(self) -> bool:
        """Whether a start law is given, or first observations were logged."""
        return self.start_law is not None or bool(self.transitions.starts.sum() > 0)

    @property
    def starts(self) -> FloatArray:
        """μ₀: given, or the first observations of the logs."""
        if self.start_law is not None:
            return self.start_law
        law = self.transitions.start_law
        if law.sum() == 0:
            raise DataError(
                "no first observation is known, so there is no start law",
                expected="episodes whose first step is in the logs",
                hint=Advice(
                    "use ", Setting("estimand", "average"), " on logs without terminated rows, or log the first steps"
                ),
            )
        return law


Reader = Callable[[Any, Any], Any]
"""Of a question and a solution on its counts, what is wanted of the flow behind it."""


def pair_probabilities(policy: Policy, transitions: Transitions, who: str) -> FloatArray:
    """π(a|s) of a policy on the logged pairs, checked."""
    observations = transitions.observations[transitions.pair_state]
    with np.errstate(over="ignore"), asking(policy):
        values = np.exp(policy.log_prob(observations, transitions.actions[transitions.pair_action]))
    if values.shape != (transitions.n_pairs,) or not np.all(np.isfinite(values)):
        raise DataError(
            f"{who} did not give one log-probability for each of {transitions.n_pairs} (state, action) pairs",
            expected=f"shape ({transitions.n_pairs},), finite or −inf",
            got=f"shape {values.shape}",
        )
    check_totals(sum_by(transitions.pair_state, values), who)
    return np.asarray(values, dtype=np.float64)


def state_probabilities(policy: Policy, transitions: Transitions, states: IntArray | None = None) -> FloatArray:
    """π(a|s) of a policy for the logged actions, in all states or in some."""
    asked = transitions.observations if states is None else transitions.observations[states]
    with asking(policy):
        if isinstance(policy, DiscretePolicy):
            return align_actions(policy.probs(asked), policy.actions, transitions.actions)
        n, k = len(asked), len(transitions.actions)
        observations = np.repeat(asked, k, axis=0)
        found = np.exp(policy.log_prob(observations, np.tile(transitions.actions, n))).reshape(n, k)
    check_totals(found.sum(axis=1), "the policy")
    return found


def align_actions(probabilities: FloatArray, have: AnyArray, want: AnyArray) -> FloatArray:
    """Columns of ``probabilities`` in the order of ``want``; zero for actions the policy does not have."""
    position = {value: i for i, value in enumerate(have.tolist())}
    result = np.zeros((len(probabilities), len(want)))
    for column, value in enumerate(want.tolist()):
        if value in position:
            result[:, column] = probabilities[:, position[value]]
    return result
