"""A hospital: states of six categories and two numbers, some of them missing, and three hospitals that treat by habit.

A patient has an age, a sex, a diagnosis, an insurance and perhaps a recorded smoking habit, which stay as they are; a
severity from 1 to 4, a ward that mostly follows it, and a blood pressure that is measured anew every day, unless it is
not. Each day the patient is observed or treated:

    better with probability σ( −.9 + 1.1 a + .9 a [x > 140] − .5 [sepsis] − .5 a [stroke] − .02 (age − 60) )
    worse  with probability .12 + .10 [smoker] + .08 [sepsis], if not better
    reward −severity − .6 a, and 6 more on the day of the discharge, which is when severity falls below 1,

a = 1 being treatment and x the blood pressure, measured or not. What is not measured is drawn afresh given the rest,
so that the recorded state tells all that can be told. Stays are cut after 12 days. The insurance tells nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from mixope.worlds.continuous import Truth
from mixope.worlds.simulation import share_episodes

Columns = dict[str, AnyArray]
Law = Callable[[Mapping[str, AnyArray]], FloatArray]
"""The columns of some states by name → the laws over ``ACTIONS``."""

ACTIONS = ("observe", "treat")
LONGEST = 12
_DIAGNOSES = ("fracture", "pneumonia", "sepsis", "stroke")
_INSURANCES = ("basic", "none", "private")
_WARDS = np.array(["general", "general", "surgical", "intensive"])
_UNMEASURED, _UNASKED, _MISPLACED = 0.1, 0.08, 0.1


@dataclass(frozen=True)
class Patients:
    """Everything about some patients, also what is not recorded."""

    age: AnyArray
    sex: AnyArray
    diagnosis: AnyArray
    insurance: AnyArray
    smoker: AnyArray
    severity: AnyArray
    ward: AnyArray
    pressure: AnyArray
    measured: AnyArray

    def take(self, chosen: BoolArray) -> Patients:
        """Some of them."""
        return Patients(*(getattr(self, each.name)[chosen] for each in fields(self)))

    @property
    def recorded(self) -> Columns:
        """The state as a log has it: an unmeasured pressure is NaN, an unrecorded habit is ``(missing)``."""
        return {
            "ward": self.ward,
            "diagnosis": self.diagnosis,
            "severity": self.severity,
            "sex": self.sex,
            "insurance": self.insurance,
            "smoker": self.smoker,
            "age": self.age,
            "pressure": np.where(self.measured, self.pressure, np.nan),
        }


def admit(count: int, generator: np.random.Generator) -> Patients:
    """Patients on their first day."""
    age = np.asarray(np.clip(generator.normal(62, 14, count), 20, 95).round(1), dtype=np.float64)
    habit = np.where(generator.random(count) < 0.3, "yes", "no")
    smoker = np.where(generator.random(count) < _UNASKED, "(missing)", habit)
    diagnosis = generator.choice(_DIAGNOSES, count, p=(0.3, 0.35, 0.15, 0.2))
    severity = generator.choice((2, 3, 4), count, p=(0.4, 0.4, 0.2))
    sex, insurance = generator.choice(("f", "m"), count), generator.choice(_INSURANCES, count)
    fixed = (age, sex, diagnosis, insurance, smoker)
    return Patients(*fixed, severity, *_today(age, severity, generator))


def _today(
    age: FloatArray, severity: IntArray, generator: np.random.Generator
) -> tuple[AnyArray, FloatArray, BoolArray]:
    """Ward, blood pressure and whether it was measured."""
    n = len(age)
    full = generator.random(n) < _MISPLACED
    ward = np.where(full, generator.choice(_WARDS[1:], n), _WARDS[np.clip(severity, 1, 4) - 1])
    pressure = np.round(generator.normal(112 + 0.25 * age + 5 * severity, 12), 1)
    return ward, pressure, generator.random(n) >= _UNMEASURED


def treat(patients: Patients, treated: BoolArray, generator: np.random.Generator) -> tuple[Patients, FloatArray]:
    """The next day and the reward; a severity of 0 is a discharge."""
    a, sepsis, stroke = treated.astype(np.float64), patients.diagnosis == "sepsis", patients.diagnosis == "stroke"
    logit = -0.9 + 1.1 * a + 0.9 * a * (patients.pressure > 140) - 0.5 * sepsis - 0.5 * a * stroke
    better = generator.random(len(a)) < 1 / (1 + np.exp(-(logit - 0.02 * (patients.age - 60))))
    worse = generator.random(len(a)) < 0.12 + 0.1 * (patients.smoker == "yes") + 0.08 * sepsis
    severity = np.minimum(patients.severity - better + (~better & worse), 4)
    reward = -patients.severity - 0.6 * a + 6.0 * (severity == 0)
    ward, pressure, measured = _today(patients.age, severity, generator)
    return replace(patients, severity=severity, ward=ward, pressure=pressure, measured=measured), reward


def _law(chance: AnyArray) -> FloatArray:
    return np.stack([1 - chance, chance], axis=1)


def cautious(states: Mapping[str, AnyArray]) -> FloatArray:
    """Treats the severe."""
    return _law(np.where(states["severity"] >= 3, 0.6, 0.2))


def by_pressure(states: Mapping[str, AnyArray]) -> FloatArray:
    """Treats a high blood pressure; an unmeasured one sometimes."""
    return _law(np.where(np.isnan(states["pressure"]), 0.4, np.where(states["pressure"] > 140, 0.75, 0.3)))


def by_age(states: Mapping[str, AnyArray]) -> FloatArray:
    """Treats the young and those in intensive care."""
    return _law(np.where((states["age"] < 60) | (states["ward"] == "intensive"), 0.65, 0.35))


def reference(states: Mapping[str, AnyArray]) -> FloatArray:
    """A policy to ask about: treats a high blood pressure and the severe, strokes less."""
    wants = (states["pressure"] > 140) | (states["severity"] >= 3)
    return _law(np.where(wants & (states["diagnosis"] != "stroke"), 0.85, 0.25))


HOSPITALS: Mapping[str, Law] = {"east": cautious, "north": by_pressure, "west": by_age}


def simulate(patients: int, laws: Mapping[str, Law] = HOSPITALS, *, seed: int) -> Columns:
    """A log of so many patients, shared evenly among the hospitals; columns as they would be exported."""
    generator = np.random.default_rng(seed)
    logger = share_episodes(len(laws), patients, LONGEST)
    now, alive, parts = admit(patients, generator), np.arange(patients), []
    for day in range(LONGEST):
        chance = np.zeros(len(alive))
        for j, law in enumerate(laws.values()):
            mine = logger[alive] == j
            chance[mine] = law({name: column[mine] for name, column in now.recorded.items()})[:, 1]
        treated = generator.random(len(alive)) < chance
        after, reward = treat(now, treated, generator)
        parts.append(_day(now, after, alive, day, treated, reward, np.array(list(laws))[logger[alive]]))
        stay = after.severity > 0
        now, alive = after.take(stay), alive[stay]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _day(
    now: Patients,
    after: Patients,
    patient: IntArray,
    day: int,
    treated: BoolArray,
    reward: FloatArray,
    hospital: AnyArray,
) -> Columns:
    """The rows of one day; after a discharge there is no next state."""
    gone = after.severity == 0
    columns: Columns = {"episode_id": patient, "step": np.full(len(patient), day), "policy_id": hospital}
    columns |= {f"observation.{name}": _exported(column, gone & False) for name, column in now.recorded.items()}
    columns |= {"action": np.array(ACTIONS)[treated.astype(np.int64)], "reward": reward}
    columns |= {f"next_observation.{name}": _exported(column, gone) for name, column in after.recorded.items()}
    return columns | {"terminated": gone, "truncated": ~gone & (day == LONGEST - 1)}


def _exported(column: AnyArray, gone: BoolArray) -> AnyArray:
    """A column with nothing where there is no state, and where a word is missing."""
    if column.dtype.kind == "f":
        return np.asarray(np.where(gone, np.nan, column))
    objects = column.astype(object)
    objects[gone | (column == "(missing)")] = None
    return objects


def discounted(law: Law, gamma: float, *, patients: int = 40_000, days: int = 120, seed: int = 1) -> Truth:
    """(1 − γ) E Σ γᵗ r of a policy by simulation, with its standard error; stays are not cut."""
    generator = np.random.default_rng(seed)
    now, alive, total = admit(patients, generator), np.arange(patients), np.zeros(patients)
    for day in range(days):
        treated = generator.random(len(alive)) < law(now.recorded)[:, 1]
        after, reward = treat(now, treated, generator)
        total[alive] += gamma**day * reward
        stay = after.severity > 0
        now, alive = after.take(stay), alive[stay]
    values = (1 - gamma) * total
    return Truth(float(values.mean()), float(values.std(ddof=1) / np.sqrt(patients)))
