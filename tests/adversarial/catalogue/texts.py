"""What can be wrong, or awkward and right, with a text file: its bytes, its lines, its quotes, its words for values."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

from .cases import Answered, Case, Command, Expected, Refused, evaluate
from .formats import CLEAN, table_of, text_of

GOOD = text_of(table_of(CLEAN)).replace(b'"', b"")
HEAD, _, BODY = GOOD.partition(b"\n")
LINES = BODY.splitlines()
ROW = LINES[4]
"""a,1,1,0,1,1.5,1,false,false,0.5"""
FEW = b"policy_id,episode_id,step,observation,action,reward,next_observation\na,0,0,0,0,1.0,0\n"


def edit(old: bytes, new: bytes, count: int = -1) -> bytes:
    assert old in GOOD
    return GOOD.replace(old, new, count)


def row(new: bytes) -> bytes:
    """The fifth row replaced."""
    return edit(ROW, new)


def with_column(name: bytes, value: bytes) -> bytes:
    return b"\n".join([HEAD + b"," + name, *(line + b"," + value for line in LINES), b""])


WHERE = ("where: ", "log.csv")
REFUSED: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "nothing": (b"", ("The file is empty", *WHERE)),
    "a blank line": (b"\n", ("The file is empty", *WHERE)),
    "blank lines only": (b"\n\n\n", ("The file is empty", *WHERE)),
    "a byte-order mark alone": (b"\xef\xbb\xbf", ("The file is empty", *WHERE)),
    "a header alone": (HEAD, ("header and no rows", *WHERE)),
    "a header and an end of line": (HEAD + b"\r\n", ("header and no rows", *WHERE)),
    "no header": (BODY, ("same name", *WHERE, "the first line must hold the names")),
    "sixteen bits cut short": (GOOD.decode().encode("utf-16")[:-1], ("not text in utf-16", *WHERE, "truncated data")),
    "sixteen bits without a mark": (GOOD.decode().encode("utf-16-le"), ("not UTF-8", *WHERE, "utf-16-le")),
    "Latin letters in the header": (edit(b"reward", b"gr\xf6\xdfe"), ("not UTF-8", *WHERE, "save it as UTF-8")),
    "Latin letters in a row": (edit(b"\na,1,1", b"\n\xe4,1,1"), ("not UTF-8", "0xe4 in line 6", "cp1252", *WHERE)),
    "a NUL in a label": (edit(b"\na,1,1", b"\na\x00,1,1"), ("NUL character", "'policy_id'", "rows: 4", "try: ")),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(64), ("not UTF-8", *WHERE)),
    "a zip": (b"PK\x03\x04" + bytes(200), ("not UTF-8", "log.csv", "try: ")),
    "Parquet by another name": (b"PAR1" + bytes(60) + b"PAR1", ("not UTF-8", "log.csv", "try: ")),
    "a page of the web": (b"<!DOCTYPE html>\n<html><body>Not found</body></html>\n", ("no column for the", "try: ")),
    "JSON": (b'[{"observation": 0, "action": 1, "reward": 1.0}]\n', ("header and no rows", *WHERE)),
    "a row too long": (row(ROW + b",7,7"), ("line 6: Expected Number of Columns: 10 Found: 1", *WHERE)),
    "a row too short": (row(b"a,1,1,0"), ("line 6: Expected Number of Columns: 10 Found: 4", *WHERE)),
    "the last row cut": (GOOD[:-20], ("cannot be read: line 13", *WHERE, "try: ")),
    "a quote that never ends": (edit(b"\na,1,1", b'\n"a,1,1'), ("line 6: Value with unterminated quote", *WHERE)),
    "a quote inside a word": (edit(b"\na,1,1", b'\n"a"b,1,1'), ("cannot be read", *WHERE, "try: ")),
    "a column twice": (with_column(b"reward", b"1"), ("Two columns have the same name", "'reward'", "rename or drop")),
    "a decimal comma": (row(b'a,1,1,0,1,"1,5",1,false,false,0.5'), ("'reward'", "'1,5'", "rows: 4", "try: ")),
    "thousands": (row(b'a,1,1,0,1,"1,000.5",1,false,false,0.5'), ("'reward'", "'1,000.5'", "rows: 4", "try: ")),
    "a currency": (row(b"a,1,1,0,1,$1.5,1,false,false,0.5"), ("'reward'", "'$1.5'", "rows: 4", "try: ")),
    "a percentage": (row(b"a,1,1,0,1,1.5,1,false,false,50%"), ("'action_prob'", "'50%'", "rows: 4", "try: ")),
    "a hexadecimal reward": (row(b"a,1,1,0,1,0x1F,1,false,false,0.5"), ("'reward'", "'0x1F'", "rows: 4", "try: ")),
    "a word for nothing in the rewards": (row(b"a,1,1,0,1,NA,1,false,false,0.5"), ("'reward'", "'NA'", "rows: 4")),
    "a null in words": (row(b"a,1,1,0,1,NULL,1,false,false,0.5"), ("'reward'", "'NULL'", "rows: 4", "try: ")),
    "None in the steps": (row(b"a,1,None,0,1,1.5,1,false,false,0.5"), ("'step'", "'None'", "rows: 4", "try: ")),
    "a reward of blanks": (row(b"a,1,1,0,1,  ,1,false,false,0.5"), ("'reward'", "rows: 4", "try: ")),
    "a reward that overflows": (row(b"a,1,1,0,1,1e999,1,false,false,0.5"), ("'reward'", "rows: 4", "try: ")),
    "a step that overflows": (row(b"a,1,99999999999999999999,0,1,1.5,1,false,false,0.5"), ("'step'", "rows: 4")),
    "a flag of yes": (row(b"a,1,1,0,1,1.5,1,yes,false,0.5"), ("'terminated'", "'yes'", "write true or false")),
    "a flag of 2": (
        GOOD.replace(b"false", b"0").replace(b"true", b"2"),
        ("'truncated' is neither true nor false", "got: 2", "try: "),
    ),
    "comments above the header": (
        b"# recorded in May\n" + GOOD,
        ("cannot be read: line 2: Expected Number of Columns: 1 Found: 2", *WHERE),
    ),
    "formulas": (row(b"a,1,1,0,1,=1+1,1,false,false,0.5"), ("'reward'", "'=1+1'", "rows: 4", "try: ")),
    "a state in words among numbers": (row(b"a,1,1,zero,1,1.5,1,false,false,0.5"), ("observation", "log.csv", "try: ")),
}

SAME: dict[str, bytes] = {
    "a byte-order mark": b"\xef\xbb\xbf" + GOOD,
    "lines of Windows": GOOD.replace(b"\n", b"\r\n"),
    "lines of an old Macintosh": GOOD.replace(b"\n", b"\r"),
    "no end of the last line": GOOD.rstrip(b"\n"),
    "blank lines at the end": GOOD + b"\n\n",
    "everything in quotes": b"\n".join(
        b",".join(b'"' + cell + b'"' for cell in line.replace(b'"', b"").split(b",")) for line in GOOD.splitlines()
    ),
    "semicolons": GOOD.replace(b",", b";"),
    "bars": GOOD.replace(b",", b"|"),
    "tabs in a file called csv": GOOD.replace(b",", b"\t"),
    "blanks around names": edit(b",reward,", b", reward ,"),
    "blanks around numbers": row(b"a, 1 , 1 ,0,1, 1.5 ,1,false,false,0.5"),
    "a column without a name": with_column(b"", b"7"),
    "a label with a comma": GOOD.replace(b"\na,", b'\n"a, b",'),
    "a label with quotes": GOOD.replace(b"\na,", b'\n"a ""b""",'),
    "a label of two lines": GOOD.replace(b"\na,", b'\n"a\nb",'),
    "labels in other letters": GOOD.replace(b"\na,", "\n北京,".encode()),
    "labels called NA": GOOD.replace(b"\na,", b"\nNA,"),
    "labels called nan": GOOD.replace(b"\na,", b"\nnan,"),
    "labels called true": GOOD.replace(b"\na,", b"\ntrue,"),
    "labels that look like SQL": GOOD.replace(b"\na,", b"\n'; DROP TABLE x; --,"),
    "labels that look like formulas": GOOD.replace(b"\na,", b"\n=1+1,"),
    "labels empty": GOOD.replace(b"\na,", b"\n,"),
    "plus signs and zeros in front": row(b"a,+1,01,0,1,+1.50,1,false,false,.5"),
    "rewards with exponents": row(b"a,1,1,0,1,15e-1,1,false,false,5E-1"),
    "flags in capitals": GOOD.replace(b"false", b"FALSE").replace(b"true", b"True"),
    "flags of 0 and 1": GOOD.replace(b"false", b"0").replace(b"true", b"1"),
    "propensities left empty": row(b"a,1,1,0,1,1.5,1,false,false,"),
    "a label with a NUL written out": GOOD.replace(b"\na,", b"\na\\0,"),
}
"""Files that hold the clean log."""

ELSEWHERE: dict[str, tuple[str, bytes, Expected]] = {
    "gzip by name only": ("log.csv.gz", GOOD, Refused(("cannot be read", "log.csv.gz", "try: "))),
    "gzip cut short": ("log.csv.gz", gzip.compress(GOOD)[:-20], Refused(("cannot be read", "log.csv.gz", "try: "))),
    "gzip of nothing": ("log.csv.gz", gzip.compress(b""), Refused(("The file is empty", "log.csv.gz"))),
    "gzip with a wrong sum": (
        "log.csv.gz",
        gzip.compress(GOOD)[:-8] + bytes(8),
        Refused(("cannot be read", "log.csv.gz", "try: ")),
    ),
    "gzip of a header": ("log.csv.gz", gzip.compress(HEAD), Refused(("header and no rows", "log.csv.gz"))),
    "gzip in two members": ("log.csv.gz", gzip.compress(GOOD[:200]) + gzip.compress(GOOD[200:]), Answered()),
    "gzip without its ending": ("log.csv", gzip.compress(GOOD), Refused(("not UTF-8", "log.csv"))),
    "zstd": ("log.csv.zst", b"\x28\xb5\x2f\xfd" + bytes(30), Refused(("Unknown format", "log.csv.zst"))),
    "commas in a file called tsv": ("log.tsv", GOOD, Refused(("no column for the", "log.tsv", "try: "))),
    "an ending in capitals": ("LOG.CSV", GOOD, Answered()),
    "no ending": ("log", GOOD, Refused(("Unknown format", "a name ending in .parquet"))),
    "another ending": ("log.txt", GOOD, Refused(("Unknown format", "log.txt", "try: "))),
    "one row": ("log.csv", FEW, Answered(value=None)),
    "a Parquet file of text": ("log.parquet", GOOD, Refused(("cannot be read", "log.parquet", "try: "))),
    "an empty Parquet file": ("log.parquet", b"", Refused(("cannot be read", "log.parquet", "try: "))),
    "an Arrow file of text": ("log.arrow", GOOD, Refused(("cannot be read", "log.arrow", "try: "))),
    "an empty Arrow file": ("log.arrow", b"", Refused(("cannot be read", "log.arrow", "try: "))),
    "an npz of text": ("log.npz", GOOD, Refused(("cannot be read", "log.npz"))),
    "an empty npz": ("log.npz", b"", Refused(("cannot be read", "log.npz"))),
    "a pickle": ("log.pkl", b"\x80\x04N.", Refused(("Unknown format", "log.pkl", "try: "))),
    "HDF5": ("log.h5", b"\x89HDF\r\n\x1a\n" + bytes(64), Refused(("cannot be read", "log.h5"))),
    "JSON lines": ("log.jsonl", b'{"reward": 1}\n', Refused(("no column for the observation", "log.jsonl", "try: "))),
    "a spreadsheet": ("log.xlsx", b"PK\x03\x04" + bytes(60), Refused(("Unknown format", "log.xlsx", "try: "))),
}


def _ask(name: str, content: bytes) -> Command:
    def words(folder: Path) -> list[str]:
        (folder / name).write_bytes(content)
        return evaluate("--estimator", "emp")(name)

    return Command(words)


def cases() -> Iterator[Case]:
    for name, (content, words) in REFUSED.items():
        yield Case(f"text: {name}", _ask("log.csv", content), Refused(words))
    for name, content in SAME.items():
        yield Case(f"text: {name}", _ask("log.csv", content), Answered())
    for name, (file, content, expected) in ELSEWHERE.items():
        yield Case(f"file: {name}", _ask(file, content), expected)
