"""The tables of the worlds, from results/worlds.csv: ``python -m benchmarks.worlds.tables [--sizes 50]``.

Errors are medians over logs. A *miss* is an interval that does not hold the truth; it is *flagged* where the verdict
refuses or asks for caution. An answer is *right* where its interval holds the truth.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

import numpy as np
from benchmarks.resuming import holds
from benchmarks.tables import markdown
from benchmarks.worlds.cells import CELLS, RANKED
from benchmarks.worlds.run import RESULTS
from benchmarks.worlds.write import SEEDS, SIZES

Row = dict[str, str]
REFUSED = "not supported by these logs"
FLAGS = (REFUSED, "caution")


def chosen(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """The rows that have these values."""
    return [row for row in rows if all(row[name] == str(value) for name, value in wanted.items())]


def names(rows: Iterable[Row]) -> list[str]:
    """The estimators, in the order in which they came."""
    return list(dict.fromkeys(row["estimator"] for row in rows))


def number(value: float) -> str:
    """Two digits, without the zero before the point."""
    return f"{value:.2f}".replace("0.", ".", 1) if value < 10 else f"{value:.0f}"


def share(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else "–"


def error(rows: Sequence[Row]) -> str:
    """The median of the errors, with what was refused or has no answer."""
    if not rows:
        return ""
    answered = [float(row["relative"]) for row in rows if row["value"]]
    refused = sum(row["verdict"] == REFUSED for row in rows)
    words = [f"{refused} of {len(rows)} refused"] if refused else []
    words += [f"{len(rows) - len(answered)} of {len(rows)} without an answer"] if len(answered) < len(rows) else []
    middle = number(float(np.median(answered))) if answered else "–"
    return f"{middle} ({', '.join(words)})" if words else middle


def errors(rows: Sequence[Row]) -> str:
    """Cells by estimators."""
    columns = names(rows)
    present = [name for name in CELLS if chosen(rows, cell=name)]
    lines = [[name, *(error(chosen(rows, cell=name, estimator=column)) for column in columns)] for name in present]
    return markdown(["", *columns], lines)


def trust(rows: Sequence[Row]) -> str:
    """Intervals, verdicts and costs of each estimator over all cells."""
    lines = []
    for name in names(rows):
        mine = chosen(rows, estimator=name)
        judged = [row for row in mine if row["low"]]
        missed, held = [r for r in judged if not holds(r)], [r for r in judged if holds(r)]
        given = [row for row in judged if row["verdict"] != REFUSED]
        seconds = [float(row["seconds"]) for row in mine if row["seconds"]]
        errors = [float(row["relative"]) for row in mine if row["value"]]
        learned = sum(row["chosen"] == "fqe" for row in mine)
        lines.append(
            [
                name,
                number(float(np.median(errors))) if errors else "–",
                share(learned, len(mine)),
                share(sum(map(holds, given)), len(given)),
                share(sum(row["verdict"] in FLAGS for row in missed), len(missed)),
                share(sum(row["verdict"] == REFUSED for row in held), len(held)),
                f"{np.median(seconds):.0f}, {max(seconds):.0f}" if seconds else "–",
                str(max((int(row["megabytes"]) for row in mine if row["megabytes"]), default="–")),
            ]
        )
    head = [
        "",
        "median error",
        "learned",
        "intervals that hold, not refused",
        "misses flagged",
        "right answers refused",
    ]
    return markdown([*head, "processor s: median, most", "peak MB"], lines)


def ranking(rows: Sequence[Row]) -> str:
    """Spearman's correlation with the true order, and what choosing the first costs in units of the distance."""
    lines = []
    for name in (name for name in RANKED if chosen(rows, cell=name)):
        for column in names(rows):
            logs = [ranked(chosen(rows, cell=name, estimator=column, seed=seed)) for seed in seeds(rows)]
            found = np.array([log for log in logs if log is not None])
            if len(found):
                order, regret = np.median(found, axis=0)
                lines.append([name, column, f"{order:.2f}", f"{regret / distance(name):.2f}", str(len(found))])
    return markdown(["", "", "Spearman", "regret", "logs"], lines)


def ranked(rows: Sequence[Row]) -> tuple[float, float] | None:
    """Spearman's correlation and the regret of the first on one log; None where not all targets have an answer."""
    from scipy.stats import spearmanr

    values, truths = (np.array([float(row[name] or "nan") for row in rows]) for name in ("value", "truth"))
    if len(rows) < 3 or not np.isfinite(values).all():
        return None
    return float(spearmanr(values, truths).statistic), float(truths.max() - truths[values.argmax()])


def distance(name: str) -> float:
    """From what the loggers of a cell earn to its truth."""
    cell = CELLS[name]
    return abs(cell.logged_value - cell.truths(cell.stored["targets"][0])[0])


def seeds(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(row["seed"] for row in rows))


def tables(rows: Sequence[Row], size: int) -> str:
    """All tables of one size of log."""
    mine = chosen(rows, episodes=size)
    first = chosen(mine, target=0)
    parts = [f"{size} episodes", errors(first), trust(first)]
    if any(row["target"] != "0" for row in mine):
        parts.append(ranking([row for row in mine if row["cell"] in RANKED]))
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), metavar="EPISODES")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    given = parser.parse_args()
    rows = [row for row in RESULTS.read() if int(row["seed"]) in given.seeds]
    print("\n\n".join(tables(rows, size) for size in given.sizes if chosen(rows, episodes=size)))


if __name__ == "__main__":
    main()
