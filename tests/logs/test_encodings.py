"""Text in other encodings: read as what it is said to be, and otherwise refused with the words that would read it."""

import gzip
import io
import random
from contextlib import suppress

import pytest
from tests.cli.running import run

import mixope
from mixope.base.errors import DataError, MixopeError, UsageError

WORDS = ["Café", "Müller", "Łódź", "京都", "plain"]


def text(words, steps=5):
    rows = [f"{word},{t},{t % 3},go,{t / 2},{str(t == steps - 1).lower()}" for word in words for t in range(steps)]
    return "\n".join(["episode_id,step,state,action,größe,terminated", *rows, ""])


def rows_of(given, **said):
    logs = mixope.read(given, columns={"reward": "größe"}, **said)
    return logs.table()


ENCODINGS = {
    "latin-1": WORDS[:2],
    "cp1252": [*WORDS[:2], "„quoted“"],
    "iso8859-2": WORDS[1:3],
    "utf-16": WORDS,
    "utf-16-le": WORDS,
    "utf-16-be": WORDS,
    "shift_jis": ["plain", "京都"],
    "utf-32": WORDS,
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", "stream"])
def test_a_file_is_read_in_the_encoding_that_is_named(encoding, ending, tmp_path):
    words = ENCODINGS[encoding]
    whole = text(words).replace("größe", "reward") if encoding == "shift_jis" else text(words)
    content, columns = whole.encode(encoding), {} if encoding == "shift_jis" else {"reward": "größe"}
    given, said = tmp_path / f"log{ending}", {"encoding": encoding, "columns": columns}
    if ending == "stream":
        given, said = io.BytesIO(content), said | {"format": "csv"}
    else:
        given.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    logs = mixope.read(given, **said)
    assert logs.table().column("episode_id").to_pylist() == [word for word in words for _ in range(5)]
    assert logs.inputs()[0]["encoding"] == encoding


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_what_says_its_encoding_itself_needs_no_word(encoding, tmp_path):
    (tmp_path / "log.csv").write_bytes(text(WORDS).encode(encoding))
    assert rows_of(tmp_path / "log.csv").column("episode_id").to_pylist()[5] == "Müller"


def test_files_of_a_folder_may_say_it_one_by_one(tmp_path):
    (tmp_path / "a.csv").write_bytes(text(["ä"]).encode("utf-16"))
    (tmp_path / "b.csv").write_bytes(text(["ö"]).encode("utf-8"))
    assert set(rows_of(tmp_path).column("episode_id").to_pylist()) == {"ä", "ö"}


def test_json_lines_too(tmp_path):
    rows = [f'{{"episode_id": "é", "step": {t}, "s": 0, "a": 0, "r": 1.0, "terminated": false}}' for t in range(3)]
    (tmp_path / "log.jsonl").write_bytes("\n".join(rows).encode("latin-1"))
    assert mixope.read(tmp_path / "log.jsonl", encoding="latin-1").table().column("episode_id").to_pylist() == ["é"] * 3


REFUSED = {
    "a header": (text(["a"]).encode("latin-1"), "0xf6 in line 1(.|\n)*cp1252"),
    "a row": (text(["a", "é"]).replace("größe", "reward").encode("latin-1"), "0xe9 in line 7(.|\n)*cp1252"),
    "far down": (
        text(["a"] * 9_000 + ["é"]).replace("größe", "reward").encode("latin-1"),
        "0xe9 in line 45,002(.|\n)*encoding='cp1252'",
    ),
    "what cp1252 has not": (
        text(["\x81é"]).replace("größe", "reward").encode("latin-1"),
        "0x81 in line 2(.|\n)*latin-1",
    ),
    "without a mark": (text(WORDS).encode("utf-16-be"), "utf-16-be"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_error_names_the_byte_and_what_would_read_it(name, tmp_path):
    content, words = REFUSED[name]
    (tmp_path / "log.csv").write_bytes(content)
    with pytest.raises(DataError, match=f"not UTF-8 text(.|\n)*log.csv(.|\n)*{words}"):
        mixope.read(tmp_path / "log.csv")


def test_the_command_says_what_to_type_and_that_works(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(text(["é", "a"]).replace("größe", "reward").encode("latin-1"))
    refused = run("inspect", str(path))
    assert refused.exit_code == 3
    assert "--encoding cp1252" in refused.output
    assert run("inspect", str(path), "--encoding", "cp1252").exit_code == 0


def test_another_encoding_than_it_is_in_is_refused_where_it_can_be_told(tmp_path):
    (tmp_path / "log.csv").write_bytes(text(["é"]).encode("latin-1"))
    with pytest.raises(DataError, match=r"not text in gb18030(.|\n)*byte"):
        mixope.read(tmp_path / "log.csv", encoding="gb18030")


@pytest.mark.parametrize("encoding", ["klingon", "base64", 3, "rot13", ""])
def test_a_name_of_no_encoding_is_refused(encoding, tmp_path):
    with pytest.raises(UsageError, match="name of a text encoding"):
        mixope.read(tmp_path / "log.csv", encoding=encoding)


def test_parquet_has_no_encoding(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"s": [0], "a": [0], "r": [1.0]}), tmp_path / "log.parquet")
    with pytest.raises(UsageError, match="is for text"):
        mixope.read(tmp_path / "log.parquet", encoding="latin-1")


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
def test_damaged_text_of_any_encoding_is_read_or_refused_in_words(tmp_path):
    draw = random.Random(0)
    for number in range(80):
        encoding = draw.choice(list(ENCODINGS))
        content = bytearray(text(["a", "b"]).replace("größe", "reward").encode(encoding))
        for _ in range(draw.randrange(1, 4)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        path = tmp_path / f"{number}.csv"
        path.write_bytes(content[: draw.randrange(1, len(content) + 1)])
        with suppress(MixopeError):
            assert mixope.read(path, encoding=draw.choice([None, encoding])).table().num_rows >= 0
