"""Where inputs and outputs lie, and what they are called: folders, links, pipes, rights, long and strange names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from .cases import Answered, Case, Command, Expected, Refused, evaluate
from .formats import CLEAN, FILES, POLICY_TEXT, table_of, text_of

LOG = text_of(table_of(CLEAN))
HALF = (text_of(table_of(CLEAN).slice(0, 6)), text_of(table_of(CLEAN).slice(6)))
HOSTILE = {
    "colours": "\x1b[31mred\x1b[0m",
    "eight bits": "\x9b31m",
    "right to left": "\u202egnp.exe",
    "lines": "x\u2028\u2029y",
}
"""What a terminal would obey."""
Make = Callable[[Path], str]


def saved(name: str, content: bytes = LOG) -> Make:
    def make(folder: Path) -> str:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return name

    return make


def several(*names: str, give: str) -> Make:
    """The halves of the log under these names."""

    def make(folder: Path) -> str:
        for name, content in zip(names, HALF, strict=True):
            saved(name, content)(folder)
        return give

    return make


def pipe(folder: Path) -> str:
    os.mkfifo(folder / "log.csv")
    return "log.csv"


def linked(folder: Path) -> str:
    saved("real.csv")(folder)
    (folder / "log.csv").symlink_to("real.csv")
    return "log.csv"


def dangling(folder: Path) -> str:
    (folder / "log.csv").symlink_to("gone.csv")
    return "log.csv"


def loop(folder: Path) -> str:
    (folder / "log.csv").symlink_to("log.csv")
    return "log.csv"


def linked_folder(folder: Path) -> str:
    several("logs/a.csv", "elsewhere/b.csv", give="logs")(folder)
    (folder / "logs" / "more").symlink_to(folder / "elsewhere")
    return "logs"


def twice(folder: Path) -> str:
    saved("logs/a.csv")(folder)
    os.link(folder / "logs" / "a.csv", folder / "logs" / "b.csv")
    return "logs"


def raw_name(stem: str, content: bytes) -> Make:
    """A file whose name has a byte that is no letter in UTF-8."""

    def make(folder: Path) -> str:
        name = stem.encode() + b"-\xff.csv"
        with open(os.path.join(os.fsencode(folder), name), "wb") as file:
            file.write(content)
        return os.fsdecode(name)

    return make


def empty(folder: Path) -> str:
    (folder / "logs").mkdir()
    return "logs"


def mixed(folder: Path) -> str:
    several("logs/a.csv", "logs/b.csv", give="logs")(folder)
    FILES["parquet"](table_of({**CLEAN, "observation": ["x"] * 12, "next_observation": ["x"] * 12}), folder / "logs")
    return "logs"


LOGS: dict[str, tuple[Make, Expected]] = {
    "a name with blanks": (saved("my log.csv"), Answered()),
    "a name with an equals sign": (saved("a=b.csv"), Answered()),
    "a name with brackets": (saved("log[1].csv"), Answered()),
    "a name with a star": (saved("log*.csv"), Answered()),
    "a name with quotes": (saved('it\'s "a" log.csv'), Answered()),
    "a name with a percent sign": (saved("100%.csv"), Answered()),
    "a name with a semicolon": (saved("a; DROP TABLE x.csv"), Answered()),
    "a name in other letters": (saved("日志 журнал.csv"), Answered()),
    "a name that begins with a dash": (lambda folder: "./" + saved("-log.csv")(folder), Answered()),
    "a name of 250 letters": (saved("n" * 246 + ".csv"), Answered()),
    "a name of 300 letters": (lambda folder: "n" * 296 + ".csv", Refused(("n" * 50,))),
    "a path of 5000 letters": (lambda folder: "d/" * 2500 + "log.csv", Refused(("log.csv",))),
    "a name that is no UTF-8": (raw_name("log", LOG), Refused(("not UTF-8", "try: "))),
    "a NUL in the name": (lambda folder: "log\0.csv", Refused(("log",))),
    "a name of nothing": (lambda folder: "", Refused(("No such file",))),
    "a name of a blank": (lambda folder: " ", Refused(("No such file",))),
    "a sub-folder": (lambda folder: saved("logs/deep/er/log.csv")(folder).split("/")[0], Answered()),
    "two files of a folder": (several("logs/a.csv", "logs/b.csv", give="logs"), Answered()),
    "two files of a pattern": (several("a.log.csv", "b.log.csv", give="*.log.csv"), Answered()),
    "a pattern of folders": (several("x/a.csv", "y/b.csv", give="[xy]/*.csv"), Answered()),
    "a pattern of all depths": (several("logs/a.csv", "logs/deep/b.csv", give="logs/**/*.csv"), Answered()),
    "a folder with a note beside": (
        lambda folder: (several("logs/a.csv", "logs/b.csv", give="logs")(folder), saved("logs/READ.ME", b"")(folder))[
            0
        ],
        Answered(note="1 file is not read"),
    ),
    "a folder of nothing": (empty, Refused(("The folder holds no logs", "logs"))),
    "a folder of other things": (
        lambda folder: saved("logs/read.me", b"x")(folder).split("/")[0],
        Refused(("holds no logs",)),
    ),
    "a folder with a packed log": (
        several("logs/a.csv", "logs/b.csv.zip", give="logs"),
        Refused(("looks like a log and cannot be read as one", "b.csv.zip", "try: ")),
    ),
    "a folder with a log in parts": (
        several("logs/a.csv", "logs/b.csv.part", give="logs"),
        Refused(("looks like a log", "b.csv.part", "try: ")),
    ),
    "hidden files are no logs": (
        lambda folder: (several("logs/a.csv", "logs/b.csv", give="logs")(folder), saved("logs/.c.csv")(folder))[0],
        Answered(),
    ),
    "a folder called like a file": (
        lambda folder: saved("log.csv/a.csv")(folder).split("/")[0],
        Answered(),
    ),
    "files that disagree": (
        mixed,
        Refused(("is a string in one file and a number in another", "log.parquet", "try: ")),
    ),
    "a file twice in a folder": (twice, Refused(("try: ",))),
    "a link to a file": (linked, Answered()),
    "a link to nothing": (dangling, Refused(("No such file", "log.csv"))),
    "a link to itself": (loop, Refused(("log.csv",))),
    "a link to a folder": (linked_folder, Refused(("links to folders are not followed", "try: "))),
    "a pipe": (pipe, Refused(("a pipe or a device", "try: "))),
    "a device": (lambda folder: "/dev/zero", Refused(("a pipe or a device", "try: "))),
    "standard input": (lambda folder: "-", Refused(("Nothing came from the stream",))),
    "a home that is not there": (lambda folder: "~nobody/log.csv", Refused(("log.csv",))),
    "a label without a path": (lambda folder: "a=", Refused(("No such file", "a="))),
    "a label twice": (lambda folder: "x=" + saved("a=b.csv")(folder), Answered()),
}


def _unreadable(folder: Path) -> list[str]:
    name = saved("log.csv")(folder)
    (folder / name).chmod(0)
    return evaluate()(name)


def _target(make: Make) -> Callable[[Path], list[str]]:
    def words(folder: Path) -> list[str]:
        saved("log.csv")(folder)
        return evaluate("--estimator", "emp", target=make(folder))("log.csv")

    return words


TARGETS: dict[str, tuple[Make, Expected]] = {
    "a name with blanks": (saved("my policy.csv", POLICY_TEXT.encode()), Answered()),
    "a name with a colon": (saved("a:b.csv", POLICY_TEXT.encode()), Answered()),
    "a name like a module": (saved("own:good", POLICY_TEXT.encode()), Refused(("cannot read a policy table",), 2)),
    "an ending in capitals": (saved("P.CSV", POLICY_TEXT.encode()), Answered()),
    "a folder": (lambda folder: ".", Refused(("a folder, not a file", "try: "))),
    "a device": (lambda folder: "/dev/null", Refused(("a pipe or a device", "try: "))),
    "a name of 300 letters": (lambda folder: "n" * 296 + ".csv", Refused(("n" * 50,))),
    "a name of nothing": (lambda folder: "", Refused(("",))),
    "a NUL in the name": (lambda folder: "t\0.csv", Refused(("t",))),
    "a name that is no UTF-8": (raw_name("t", POLICY_TEXT.encode()), Refused(("not UTF-8", "try: "))),
}


def _page(place: str, prepare: Callable[[Path], object] = lambda folder: None) -> Callable[[Path], list[str]]:
    def words(folder: Path) -> list[str]:
        saved("log.csv")(folder)
        prepare(folder)
        return evaluate("--estimator", "emp", "--html", place)("log.csv")

    return words


PAGES: dict[str, tuple[Callable[[Path], list[str]], Expected]] = {
    "a new folder": (_page("new/deep/page.html"), Answered()),
    "an ending in capitals": (_page("PAGE.HTML"), Answered()),
    "a name of 300 letters": (_page("n" * 295 + ".html"), Refused(("cannot be written", "n" * 50), 2)),
    "a folder that is a file": (_page("log.csv/page.html"), Refused(("cannot be written", "log.csv"), 2)),
    "a NUL in the name": (_page("p\0.html"), Refused(("--html", "null byte"), 2)),
}


def _hostile(text: str) -> dict[str, tuple[Callable[[Path], list[str]], Expected]]:
    """The same text wherever a user or a file can put one."""
    cells = LOG.replace(b"\na,", f'\n"{text}",'.encode()).replace(b'\n"a",', f'\n"{text}",'.encode())
    header = LOG.replace(b'"reward"', f'"{text}"'.encode())
    states = LOG.replace(b',"observation"', f',"observation","{text}"'.encode(), 1)

    def log(*words: str, content: bytes = LOG, name: str = "log.csv") -> Callable[[Path], list[str]]:
        return lambda folder: [words[0], saved(name, content)(folder), *words[1:]]

    target = ("--target", "target.csv")
    return {
        "a label, backtested": (log("backtest", content=cells), Answered(None)),
        "a label, inspected": (log("inspect", content=cells), Answered(None)),
        "a label, compared": (log("compare", *target, "--estimator", "emp", content=cells), Answered(None)),
        "a column": (log("evaluate", *target, content=header), Refused(("no column for the reward",))),
        "a column too many": (log("inspect", content=states), Refused(("log.csv",))),
        "a file": (log("inspect", name=f"x{text}.csv"), Answered(None)),
        "a file that is not there": (lambda folder: ["inspect", f"gone{text}.csv"], Refused(("No such file",))),
        "a target that is not there": (log("inspect", "--target", f"x{text}.csv"), Refused(("no such policy file",))),
        "a name of a target": (log("compare", "--target", f"{text}=target.csv"), Answered(None)),
        "a logger": (log("evaluate", *target, "--logger", f"{text}=target.csv"), Refused(("no rows belong",), 2)),
        "an estimator": (log("evaluate", *target, "--estimator", text), Refused(("unknown estimator",), 2)),
        "a mapping": (log("inspect", "--column", f"reward={text}"), Refused(("is not in the log",))),
        "an environment": (lambda folder: ["simulate", text, "-o", "out"], Refused(("unknown environment",), 2)),
        "a command": (lambda folder: [f"x{text}"], Refused(("No such command",), 2)),
    }


def cases() -> Iterator[Case]:
    for name, (make, expected) in LOGS.items():
        yield Case(
            f"log: {name}", Command(lambda folder, make=make: evaluate("--estimator", "emp")(make(folder))), expected
        )
    for name, (make, expected) in TARGETS.items():
        yield Case(f"policy place: {name}", Command(_target(make)), expected)
    for name, (words, expected) in PAGES.items():
        yield Case(f"page: {name}", Command(words), expected)
    if os.name == "posix" and os.geteuid() != 0:
        yield Case("log without the right to read", Command(_unreadable), Refused(("log.csv",)))
    for what, text in HOSTILE.items():
        for name, (words, expected) in _hostile(text).items():
            yield Case(f"terminal: {what} in {name}", Command(words), expected)
