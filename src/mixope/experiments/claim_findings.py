"""What the measurements say of each claim: which numbers belong to it, and on which side of 1 it wants them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mixope.experiments.claim_lines import Side, errors, line, ratio, slope
from mixope.experiments.claim_logs import PAPER
from mixope.experiments.experiment import Cell, Row

Fixed = Mapping[str, Cell]
KIND = ("environment", "loggers", "episodes", "horizon", "gamma", "change", "bumps")
PLAIN: Fixed = {"gamma": 0.0, "change": "", "bumps": 0, "horizon": 200}
ONE: Fixed = {**PLAIN, "loggers": 1}
FOUR: Fixed = {**PLAIN, "loggers": 4}


@dataclass(frozen=True)
class Measured:
    """All rows, to be asked for."""

    rows: Sequence[Row]

    def exact(self, question: str, loggers: int | None = None) -> Iterator[tuple[Row, dict[str, float]]]:
        """Every environment of which a question was asked, with its numbers."""
        found: dict[tuple[str, int], dict[str, float]] = {}
        for row in self.rows:
            if row.get("question") == question and loggers in (None, row["loggers"]):
                key = str(row["environment"]), int(str(row["loggers"]))
                number = float("nan") if row["number"] is None else float(str(row["number"]))
                found.setdefault(key, {})[str(row["quantity"])] = number
        for (name, n), numbers in found.items():
            yield {"environment": name, "loggers": n}, numbers

    def logs(self, fixed: Fixed, *methods: str) -> Iterator[tuple[Row, Row]]:
        """Every kind of log on which all the methods were tried: the place, and the fields that tell it apart."""
        kinds: dict[tuple[Cell, ...], set[str]] = {}
        for row in self.rows:
            if "method" in row and all(row[k] == v for k, v in fixed.items()):
                kinds.setdefault(tuple(row[n] for n in KIND), set()).add(str(row["method"]))
        seen = {name: k for k, name in enumerate(dict.fromkeys(row["environment"] for row in self.rows))}
        for key, tried in sorted(kinds.items(), key=lambda item: (seen[item[0][0]], *map(_sortable, item[0][1:]))):
            if tried >= set(methods):
                kind: Row = dict(zip(KIND, key, strict=True))
                yield {**kind, "trajectories": kind["episodes"]}, kind

    def ratios(
        self, claim: str, fixed: Fixed, above: str, below: str, side: Side = "", label: str = ""
    ) -> Iterator[Row]:
        """Lines of MSE ÷ MSE."""
        for where, kind in self.logs(fixed, above, below):
            number, error = ratio(errors(self.rows, above, **kind), errors(self.rows, below, **kind))
            yield line(claim, where, f"MSE {above} ÷ {below}{label}", number, error, side)

    def bias_shares(self, claim: str, fixed: Fixed, method: str) -> Iterator[Row]:
        """Lines of bias² ÷ MSE: how much of an error no further logs of this size would average out."""
        for where, kind in self.logs(fixed, method):
            mistake = errors(self.rows, method, **kind)
            share = float(np.nanmean(mistake) ** 2 / np.nanmean(mistake**2))
            yield line(claim, where, f"bias² ÷ MSE, {method}", share, None)

    def slopes(
        self, claim: str, fixed: Fixed, method: str, over: str, side: Side, border: float, centred: bool = False
    ) -> Iterator[Row]:
        """Lines of slopes over ``episodes`` or ``horizon``, an environment each; ``centred``: of the variance."""
        groups: dict[str, list[Row]] = {}
        for _, kind in self.logs(fixed, method):
            other = "horizon" if over == "episodes" else "episodes"
            groups.setdefault(f"{kind['environment']} {kind['loggers']} {kind[other]}", []).append(kind)
        for kinds in groups.values():
            if len(kinds) < 2:
                continue
            places = [float(str(kind[over])) for kind in kinds]
            samples = [errors(self.rows, method, **kind) for kind in kinds]
            number, error = slope(places, [e - np.nanmean(e) for e in samples] if centred else samples)
            where = {**kinds[0], "horizon": kinds[0]["horizon"] if over == "episodes" else None}
            yield line(
                claim,
                where,
                f"slope of log {'variance' if centred else 'MSE'} over {over}, {method}",
                number,
                error,
                side,
                border,
            )


def _sortable(value: Cell) -> tuple[float, str]:
    return (float(value), "") if isinstance(value, (int, float)) else (0.0, str(value))


def _theorem_1(found: Measured) -> Iterator[Row]:
    claim = "Theorem 1"
    for where, numbers in found.exact("first order", 1):
        for name in ("bch-pooled", "bch-pooled, uncalibrated"):
            label = name.replace("bch-pooled", "bch")
            yield line(claim, where, f"variance {label} ÷ emp, exact", numbers[name], None, "above")
    for where, numbers in found.exact("ratio"):
        yield line(claim, where, "Σ_s Var d(s), bch ÷ emp, exact", numbers["Σ_s"], None, "above")
        yield line(claim, where, "Var d(s), bch ÷ emp, least of all s, exact", numbers["least s"], None, "above")
    yield from found.ratios(claim, ONE, "bch", "emp", "above")
    for method in ("emp", "bch"):
        yield from found.bias_shares(claim, ONE, method)


def _proposition_3(found: Measured) -> Iterator[Row]:
    claim = "Proposition 3"
    for question in ("first order", "mixture"):
        for where, numbers in found.exact(question):
            if where["loggers"] != 1:
                for name in ("exact mixture, uncalibrated", "exact mixture", "known-mixture", "bch-pooled"):
                    yield line(claim, where, f"variance {name} ÷ emp, exact", numbers[name], None, "above")
    yield from found.ratios(claim, FOUR, "known-mixture", "emp", "above")


def _corollary(found: Measured) -> Iterator[Row]:
    claim = "Corollary"
    yield from found.slopes(claim, ONE, "emp", "episodes", "below", -0.8)
    yield from found.slopes(claim, ONE, f"emp{PAPER}", "episodes", "below", -0.8)
    for where, numbers in found.exact("first order", 1):
        for place, kind in found.logs({**ONE, "environment": where["environment"]}, f"emp{PAPER}"):
            mistake = errors(found.rows, f"emp{PAPER}", **kind)
            number, error = float(mistake.mean()), float(mistake.std(ddof=1) / np.sqrt(len(mistake)))
            limit = f"bias of emp{PAPER}; limit {numbers['paper form bias']:.3g}"
            yield line(claim, place, limit, number, error)


def _proposition_4(found: Measured) -> Iterator[Row]:
    for where, numbers in found.exact("balance"):
        apart = numbers["largest difference of a row"]
        yield line("Proposition 4", where, "largest difference of a row weight, exact", apart, None, "below", 1e-12)
        best = numbers["balance ÷ best heuristic"]
        yield line("Proposition 4", where, "variance, balance ÷ best heuristic, exact", best, None, "below")
        oracle = numbers["MIS with true ratios ÷ emp"]
        yield line("Proposition 4", where, "variance, MIS with true ratios ÷ emp, exact", oracle, None)


def _pooling(found: Measured) -> Iterator[Row]:
    claim = "EMP beats EMP (single)"
    for where, numbers in found.exact("first order", 4):
        yield line(claim, where, "variance emp-single ÷ emp, exact", numbers["emp-single"], None, "above")
    yield from found.ratios(claim, FOUR, "emp-single", "emp", "above")
    yield from found.bias_shares(claim, FOUR, "emp-single")


def _kl(found: Measured) -> Iterator[Row]:
    claim = "KL-EMP overtakes EMP"
    for where, numbers in found.exact("first order", 4):
        yield line(claim, where, "variance kl-emp ÷ emp, exact", numbers["kl-emp"], None, "below")
    yield from found.ratios(claim, FOUR, "kl-emp", "emp", "below")


def _sadl(found: Measured) -> Iterator[Row]:
    for fixed in (ONE, FOUR):
        yield from found.ratios("SADL beats EMP when small", fixed, "sadl", "emp", "below")


def _aware(found: Measured) -> Iterator[Row]:
    claim = "agnostic beats aware"
    for aware, agnostic in (("bch", "emp-single"), ("bch-pooled", "emp"), ("bch-kl-pooled", "kl-emp")):
        for where, numbers in found.exact("first order", 4):
            number = numbers[aware] / numbers[agnostic]
            yield line(claim, where, f"variance {aware} ÷ {agnostic}, exact", number, None, "above")
        yield from found.ratios(claim, FOUR, aware, agnostic, "above")


def _horizon(found: Measured) -> Iterator[Row]:
    claim = "IS worsens with the horizon"
    fixed: Fixed = {"loggers": 1, "episodes": 100, "gamma": 0.0, "change": "", "bumps": 0}
    sides: dict[str, Side] = {"is-step": "above", "wis-step": "above", "emp": "below", "bch": "below"}
    for method, side in sides.items():
        yield from found.slopes(claim, fixed, method, "horizon", side, 0.0)
        yield from found.slopes(claim, fixed, method, "horizon", side, 0.0, centred=True)


def _dualdice(found: Measured) -> Iterator[Row]:
    for gamma in (0.0, 0.9, 0.99):
        label = f", γ = {gamma}" if gamma else ", average"
        yield from found.ratios("Question: DualDICE or EMP", {**ONE, "gamma": gamma}, "dualdice", "emp", "", label)


def _weights(found: Measured) -> Iterator[Row]:
    claim = "Question: optimal weights"
    for where, numbers in found.exact("first order", 4):
        yield line(claim, where, "variance, best weights ÷ pooled, exact", numbers["best weights"], None)
        noisy = numbers["noise, best weights"]
        yield line(claim, where, "the same, one noisy recorder, exact", noisy, None)
    for where, numbers in found.exact("uncovered"):
        dropped = numbers["dropped ÷ pooled"]
        yield line(claim, where, "variance, a logger of one action dropped ÷ kept, exact", dropped, None)
    for change, label in (("", ""), ("noise", ", one noisy recorder"), ("drift", ", one shifted recorder")):
        yield from found.ratios(claim, {**FOUR, "change": change}, "opt-emp", "emp", "", label)
    for where, numbers in found.exact("drift"):
        yield line(claim, where, "bias of emp, one shifted recorder, limit", numbers["bias of emp"], None)
    for where, numbers in found.exact("coarse"):
        for name in ("pooled", "lowest", "highest"):
            yield line(claim, where, f"bias on merged states, weights: {name}, limit", numbers[name], None)
    yield from found.ratios(claim, {**FOUR, "bumps": 12}, "kl-emp", "emp", "", ", 12 bumps")


CLAIMS: tuple[Callable[[Measured], Iterator[Row]], ...] = (
    _theorem_1,
    _proposition_3,
    _corollary,
    _proposition_4,
    _pooling,
    _kl,
    _sadl,
    _aware,
    _horizon,
    _dualdice,
    _weights,
)
