"""What the measurements say of each claim: its lines in the table, and the picture of the ratios.

    ratio    Σ e² of one method ÷ Σ e² of another on the same logs; the standard error is that of
             ratio · (e²/MSE − e′²/MSE′), so that what the logs have in common cancels
    slope    of log10 MSE over log10 x, least squares; the standard error from those of the log10 MSE

A claim has a side: its number is to be above (or below) a border. It *holds* where the number is on that side by more
than three standard errors, *does not* on the other side, and is *not decided* in between. Exact numbers have none.

In the picture a panel is a claim and a line an environment: ratios of mean squared errors over trajectories. Dashed is
the ratio of first-order variances, to which a line tends where all is covered; grey is 1, where the two methods are as
good as each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from mixope.base.arrays import FloatArray
from mixope.paper.claim_measurements import PAPER
from mixope.paper.experiment import Cell, Row, number
from mixope.paper.style import BLUE, GREEN, GREY, NAMES, VERMILION, mark_places, share_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Side = Literal["above", "below", ""]
ROUNDING = 1e-6
SURE = 3
"""Standard errors."""

Fixed = Mapping[str, Cell]
KIND = ("environment", "loggers", "episodes", "horizon", "gamma", "change", "bumps")
PLAIN: Fixed = {"gamma": 0.0, "change": "", "bumps": 0, "horizon": 200}
ONE: Fixed = {**PLAIN, "loggers": 1}
UNCALIBRATED = "bch-pooled, uncalibrated"
FOUR: Fixed = {**PLAIN, "loggers": 4}

LOOKS = {"singlepath": (GREEN, "^"), "gridworld-slip": (BLUE, "o"), "taxi": (VERMILION, "s")}
LOWEST, HIGHEST = 0.05, 600.0


def line(
    claim: str, where: Row, quantity: str, number: float, error: float | None, side: Side = "", border: float = 1.0
) -> Row:
    """One line; ``where`` holds environment, loggers, trajectories and horizon as far as they have a meaning."""
    place = {name: where.get(name) for name in ("environment", "loggers", "trajectories", "horizon")}
    says = judge(number, error, side, border)
    return {"claim": claim, **place, "quantity": quantity, "value": number, "error": error, "says": says}


def judge(number: float, error: float | None, side: Side, border: float) -> str | None:
    """What a number says of a claim about its side of a border."""
    if not side or not np.isfinite(number):
        return None
    margin = (number - border) * (1 if side == "above" else -1)
    slack = ROUNDING * border if error is None else SURE * error
    if margin > slack:
        return "holds"
    if margin < -slack:
        return "does not"
    return "not decided" if error else "the same"


def errors(rows: Iterable[Row], method: str, **fixed: Cell) -> FloatArray:
    """The errors of a method over repetitions, where other fields are as given; NaN where it refused."""
    mine = [row for row in rows if row.get("method") == method and all(row.get(k) == v for k, v in fixed.items())]
    mine.sort(key=lambda row: number(row["repetition"]))
    return np.array([number(row["error"]) for row in mine])


def ratio(above: FloatArray, below: FloatArray) -> tuple[float, float]:
    """Σ e²/Σ e′² over the logs on which both answered, with its standard error."""
    both = np.isfinite(above) & np.isfinite(below)
    x, y = above[both] ** 2, below[both] ** 2
    if np.allclose(above[both], below[both], rtol=ROUNDING, atol=0):
        return 1.0, 0.0
    if len(x) < 2 or y.mean() == 0:
        return float("nan"), float("nan")
    found = float(x.mean() / y.mean())
    spread = x / x.mean() - y / y.mean() if x.mean() > 0 else np.zeros_like(x)
    return found, float(found * spread.std(ddof=1) / np.sqrt(len(x)))


def slope(places: Sequence[float], samples: Sequence[FloatArray]) -> tuple[float, float]:
    """d log10 MSE / d log10 x with its standard error."""
    x = np.log10(np.asarray(places, dtype=np.float64))
    squares = [sample[np.isfinite(sample)] ** 2 for sample in samples]
    y = np.log10([s.mean() for s in squares])
    noise = np.array([s.std(ddof=1) / np.sqrt(len(s)) / (s.mean() * np.log(10)) for s in squares])
    centred = x - x.mean()
    weight = centred / (centred @ centred)
    return float(weight @ y), float(np.sqrt((weight**2) @ (noise**2)))


@dataclass(frozen=True)
class Measured:
    """All rows, to be asked for."""

    rows: Sequence[Row]

    def exact(self, question: str, loggers: int | None = None) -> Iterator[tuple[Row, dict[str, float]]]:
        """Every environment of which a question was asked, with its numbers."""
        found: dict[tuple[str, int], dict[str, float]] = {}
        for row in self.rows:
            if row.get("question") == question and loggers in (None, row["loggers"]):
                key = str(row["environment"]), int(number(row["loggers"]))
                found.setdefault(key, {})[str(row["quantity"])] = number(row["number"])
        for (name, n), numbers in found.items():
            yield {"environment": name, "loggers": n}, numbers

    def exact_lines(
        self, claim: str, question: str, loggers: int | None, labels: Mapping[str, str], side: Side = ""
    ) -> Iterator[Row]:
        """Lines of exact numbers, by what they are called among the measurements."""
        for where, numbers in self.exact(question, loggers):
            for name, label in labels.items():
                yield line(claim, where, label, numbers[name], None, side)

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
            found, error = ratio(errors(self.rows, above, **kind), errors(self.rows, below, **kind))
            yield line(claim, where, f"MSE {above} ÷ {below}{label}", found, error, side)

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
            places = [number(kind[over]) for kind in kinds]
            samples = [errors(self.rows, method, **kind) for kind in kinds]
            found, error = slope(places, [e - np.nanmean(e) for e in samples] if centred else samples)
            where = {**kinds[0], "horizon": kinds[0]["horizon"] if over == "episodes" else None}
            yield line(
                claim,
                where,
                f"slope of log {'variance' if centred else 'MSE'} over {over}, {method}",
                found,
                error,
                side,
                border,
            )


def _sortable(value: Cell) -> tuple[float, str]:
    return (float(value), "") if isinstance(value, (int, float)) else (0.0, str(value))


def _theorem_1(found: Measured) -> Iterator[Row]:
    claim = "Theorem 1"
    names = {name: f"variance {name.replace('-pooled', '')} ÷ emp, exact" for name in ("bch-pooled", UNCALIBRATED)}
    yield from found.exact_lines(claim, "first order", 1, names, "above")
    names = {"Σ_s": "Σ_s Var d(s), bch ÷ emp, exact", "least s": "Var d(s), bch ÷ emp, least of all s, exact"}
    yield from found.exact_lines(claim, "ratio", None, names, "above")
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
            error = float(mistake.std(ddof=1) / np.sqrt(len(mistake)))
            limit = f"bias of emp{PAPER}; limit {numbers['paper form bias']:.3g}"
            yield line(claim, place, limit, float(mistake.mean()), error)


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
    yield from found.exact_lines(claim, "first order", 4, {"emp-single": "variance emp-single ÷ emp, exact"}, "above")
    yield from found.ratios(claim, FOUR, "emp-single", "emp", "above")
    yield from found.bias_shares(claim, FOUR, "emp-single")


def _kl(found: Measured) -> Iterator[Row]:
    claim = "KL-EMP overtakes EMP"
    yield from found.exact_lines(claim, "first order", 4, {"kl-emp": "variance kl-emp ÷ emp, exact"}, "below")
    yield from found.ratios(claim, FOUR, "kl-emp", "emp", "below")


def _sadl(found: Measured) -> Iterator[Row]:
    for fixed in (ONE, FOUR):
        yield from found.ratios("SADL beats EMP when small", fixed, "sadl", "emp", "below")


def _aware(found: Measured) -> Iterator[Row]:
    claim = "agnostic beats aware"
    for aware, agnostic in (("bch", "emp-single"), ("bch-pooled", "emp"), ("bch-kl-pooled", "kl-emp")):
        for where, numbers in found.exact("first order", 4):
            share = numbers[aware] / numbers[agnostic]
            yield line(claim, where, f"variance {aware} ÷ {agnostic}, exact", share, None, "above")
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
    names = {
        "best weights": "variance, best weights ÷ pooled, exact",
        "noise, best weights": "the same, one noisy recorder, exact",
    }
    yield from found.exact_lines(claim, "first order", 4, names)
    names = {"dropped ÷ pooled": "variance, a logger of one action dropped ÷ kept, exact"}
    yield from found.exact_lines(claim, "uncovered", None, names)
    for change, label in (("", ""), ("noise", ", one noisy recorder"), ("drift", ", one shifted recorder")):
        yield from found.ratios(claim, {**FOUR, "change": change}, "opt-emp", "emp", "", label)
    names = {"bias of emp": "bias of emp, one shifted recorder, limit"}
    yield from found.exact_lines(claim, "drift", None, names)
    names = {name: f"bias on merged states, weights: {name}, limit" for name in ("pooled", "lowest", "highest")}
    yield from found.exact_lines(claim, "coarse", None, names)
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


@dataclass(frozen=True)
class FigurePanel:
    """Which lines of the CSV are drawn: the measured ratio, and the exact one where there is one."""

    title: str
    claim: str
    measured: str
    exact: str = ""
    loggers: int = 4


PANELS = (
    FigurePanel("BCH ÷ EMP, one logger", "Theorem 1", "MSE bch ÷ emp", "variance bch ÷ emp, exact", 1),
    FigurePanel(
        "BCH (pooled) ÷ EMP", "agnostic beats aware", "MSE bch-pooled ÷ emp", "variance bch-pooled ÷ emp, exact"
    ),
    FigurePanel(
        "EMP (single) ÷ EMP", "EMP beats EMP (single)", "MSE emp-single ÷ emp", "variance emp-single ÷ emp, exact"
    ),
    FigurePanel("KL-EMP ÷ EMP", "KL-EMP overtakes EMP", "MSE kl-emp ÷ emp", "variance kl-emp ÷ emp, exact"),
    FigurePanel("SADL ÷ EMP, one logger", "SADL beats EMP when small", "MSE sadl ÷ emp", loggers=1),
    FigurePanel("DualDICE ÷ EMP, one logger", "Question: DualDICE or EMP", "MSE dualdice ÷ emp, average", loggers=1),
)


def draw_claims(rows: Sequence[Row]) -> Figure:
    """Six panels from the lines of the CSV."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.4), layout="constrained")
    grid = figure.subplots(2, 3, sharex=True, sharey=True)
    for axes, panel in zip(grid.flat, PANELS, strict=True):
        _draw_panel(axes, panel, [row for row in rows if row["claim"] == panel.claim])
    for axes in grid[:, 0]:
        axes.set_ylabel("MSE ÷ MSE of EMP")
    for axes in grid[-1]:
        axes.set_xlabel("trajectories")
    share_legend(figure, grid.flat)
    return figure


def _draw_panel(axes: Axes, panel: FigurePanel, rows: Sequence[Row]) -> None:
    axes.set_yscale("log")
    axes.set_ylim(LOWEST, HIGHEST)
    axes.set_title(panel.title)
    axes.axhline(1.0, color=GREY, linewidth=1.0)
    mark_places(axes, (row["trajectories"] for row in rows))
    for name, (colour, marker) in LOOKS.items():
        mine = [row for row in rows if row["environment"] == name and row["loggers"] == panel.loggers]
        points = [row for row in mine if row["quantity"] == panel.measured and row["value"] is not None]
        x, y = ([number(row[column]) for row in points] for column in ("trajectories", "value"))
        spread = [number(row["error"], 0.0) for row in points]
        below = [min(e, 0.9 * value) for e, value in zip(spread, y, strict=True)]
        axes.errorbar(x, y, yerr=[below, spread], color=colour, marker=marker, capsize=2, label=NAMES[name])
        for row in mine:
            if row["quantity"] == panel.exact:
                axes.axhline(number(row["value"]), color=colour, linestyle="--", linewidth=0.9)
