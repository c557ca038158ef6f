"""A document on a terminal: the same content as the page, without its figures.

Text goes in as ``rich`` text, never as markup, so that a logger named ``[red]`` keeps its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mixope.report.answer import SYMBOL, Answer
from mixope.report.contest import Contest
from mixope.report.document import Document
from mixope.report.predictions import Predictions
from mixope.report.text import number
from mixope.report.words import percent, whole

STYLE = {"good": "bold green", "caution": "bold yellow", "bad": "bold red", "reference": "dim"}


def view(shown: Document) -> Group:
    """The verdict and the number first, then what they rest on."""
    pieces: list[RenderableType] = [piece for answer in shown.answers for piece in _headline(answer)]
    pieces += [_title("Estimates"), _estimates(shown)]
    pieces += [Text(f"left out: {name}: {reason}", style="dim") for name, reason in shown.skipped]
    for contest in shown.contests:
        pieces += [_title(f"Differences by {contest.estimator}"), _differences(contest), Text(f"{contest.sentence}.")]
        pieces += [Text(f"- {note}") for note in contest.notes]
    for answer in shown.answers:
        of = f" of “{answer.row.target}”" if len(shown.answers) > 1 else ""
        if answer.checks:
            pieces += [_title(f"Checks{of}"), _checks(answer)]
        pieces += [_title(f"Weights{of}"), _loggers(answer), _title(f"Coverage and stationarity{of}"), _facts(answer)]
        if answer.coverage:
            gaps = [
                (str(g.state[0]), str(g.action), number(g.probability), percent(g.mass, 4))
                for g in answer.coverage.worst
            ]
            names = ("state", "action", "probability", "share of steps")
            pieces += [_title(f"Heaviest gaps{of}"), _table(names, gaps, right=2)]
    if shown.backtest:
        pieces += [_title("Backtest"), _backtest(shown.backtest), Text(f"{shown.backtest.sentence}.")]
    if shown.alerts:
        pieces += [_title("Alerts"), *(Text(f"- {alert}") for alert in shown.alerts)]
    return Group(*pieces, _title("Data and manifest"), _manifest(shown))


def _headline(answer: Answer) -> list[RenderableType]:
    verdict = (f"{answer.symbol} {answer.row.verdict}", STYLE[answer.row.kind])
    said = Text.assemble(verdict, ": ", (answer.value_words, "bold"), f"; {answer.interval_words}")
    lines = [said, Text(f"target “{answer.row.target}”, by {answer.row.estimator}", style="dim"), Text(answer.meaning)]
    truth = [] if answer.truth is None else [Text(f"The truth is known here: {number(answer.truth)}.")]
    better = ", ".join(f"{row.estimator} ({number(row.value)}, {row.verdict})" for row in answer.better)
    others = [Text(f"Other estimates came out better in their checks: {better}.")] if better else []
    return [*lines, Text(answer.why), *others, *truth]


def _estimates(shown: Document) -> Table:
    rows = [
        (
            row.target,
            row.estimator,
            number(row.value),
            row.interval,
            whole(row.effective_sample_size),
            percent(row.uncovered_mass),
            _sign(row.kind, row.verdict),
        )
        for row in shown.rows
    ]
    return _table(("target", "estimator", "value", "interval", "effective rows", "uncovered", "verdict"), rows)


def _checks(answer: Answer) -> Table:
    rows = [(_sign(check.kind, check.word), check.name, check.sentence) for check in answer.checks]
    return _table(("", "check", "in words"), rows)


def _loggers(answer: Answer) -> Table:
    rows = [
        (
            logger.label,
            whole(logger.rows),
            number(logger.logged_mean),
            percent(logger.weight_share, 1),
            whole(logger.effective_sample_size),
        )
        for logger in answer.loggers
    ]
    return _table(("logger", "rows", "earned a step", "share of weight", "effective rows"), rows, right=1)


def _facts(answer: Answer) -> Table:
    pairs = [
        ("uncovered", percent(answer.uncovered_mass)),
        ("outside", percent(answer.outside_mass)),
        ("largest weight", percent(answer.largest_weight)),
        ("solver", answer.solver),
        ("residual", number(answer.residual)),
    ]
    if answer.band:
        pairs.append(("outer band", f"{number(answer.band.low)} to {number(answer.band.high)}"))
    return _pairs(pairs)


def _differences(contest: Contest) -> Table:
    rows = [
        (
            pair.label,
            number(pair.value),
            f"{number(pair.low)} to {number(pair.high)}",
            "–" if pair.narrower is None else f"{pair.narrower:.1f} ×",
            pair.chance,
            _sign(pair.kind, pair.conclusion),
        )
        for pair in (*contest.pairs, *contest.loggers)
    ]
    return _table(("first − second", "difference", "interval", "narrower", "P(first is better)", "so"), rows)


def _backtest(shown: Predictions) -> Table:
    rows = [
        (
            p.label,
            number(p.predicted),
            "–" if p.low is None else f"{number(p.low)} to {number(p.high)}",
            number(p.earned),
            _sign(p.kind, p.agrees),
        )
        for p in shown.predictions
    ]
    return _table(("logger", "predicted", "interval", "earned", "agrees"), rows)


def _manifest(shown: Document) -> Table:
    dropped = f" ({whole(shown.n_dropped)} dropped)" if shown.n_dropped else ""
    known = shown.manifest
    pairs = [
        ("rows", f"{whole(shown.n_rows)}{dropped}, {whole(shown.n_episodes)} episodes"),
        ("logged mean", f"{number(shown.logged_mean)} a step"),
        *([("command", known.command)] if known.command else []),
        ("versions", ", ".join(f"{name} {version}" for name, version in known.versions)),
        ("seed, engine", f"{known.seed}, {known.engine}"),
        ("logs", known.logs_fingerprint),
        *((f"target {name}", mark) for name, mark in known.target_fingerprints),
        *(("input", f"{found.path}: {whole(found.rows)} rows, sha256 {found.sha256}") for found in known.inputs),
    ]
    return _pairs(pairs)


def _title(words: str) -> Text:
    return Text(f"\n{words}", style="bold")


def _sign(kind: str, words: str) -> Text:
    return Text(f"{SYMBOL[kind]} {words}", style=STYLE[kind])


def _table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]], right: int | None = None) -> Table:
    """Columns from number ``right`` on hold numbers."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for k, name in enumerate(columns):
        made.add_column(name, justify="right" if right is not None and k >= right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return made


def _pairs(pairs: Iterable[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(Text(name), Text(value))
    return grid
