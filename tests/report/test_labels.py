"""Labels that look alike are told apart wherever they are shown; many of them do not fill a terminal."""

import json

import pytest

import mixope
from cli.running import LOG, POLICY, json_of, run, write
from mixope.base.errors import INVISIBLE, clean
from mixope.logs import about_look_alikes, look_alikes
from mixope.report.layout import SHOWN, shortened

PAIRS = {
    "a space of no width": ("new", "new\u200b"),
    "a soft hyphen": ("new", "ne\u00adw"),
    "a byte order mark": ("new", "\ufeffnew"),
    "a tag": ("new", "new\U000e0041"),
    "a joiner": ("new", "ne\u200dw"),
    "a filler": ("new", "new\u3164"),
    "a space at the end": ("new", "new "),
    "a space that does not break": ("new one", "new\u00a0one"),
    "an accent apart": ("é", "e\u0301"),
    "a Cyrillic letter": ("new", "n\u0435w"),
    "another hyphen": ("a-b", "a\u2011b"),
}
SAME = [("new", "old"), ("new", "News"), ("a", "à"), ("logger-1", "logger-11"), ("β", "b"), ("x", "×")]


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_labels_that_look_alike_are_named(pair):
    assert look_alikes(["other", *pair]) == [pair]
    (said,) = about_look_alikes(look_alikes(pair))
    assert said.isascii()
    assert ascii(pair[1]) in said


@pytest.mark.parametrize("pair", SAME)
def test_labels_that_differ_are_not(pair):
    assert look_alikes(pair) == []


def test_thousands_of_labels_are_a_sentence():
    labels = [f"logger-{i}{end}" for i in range(1_000) for end in ("", "\u200b", " ", "\u2060", "\ufeff", "\u00ad")]
    (said,) = about_look_alikes(look_alikes(labels))
    assert "997 more" in said
    assert len(said) < 600


@pytest.mark.parametrize("label", [pair[1] for name, pair in PAIRS.items() if INVISIBLE.search(pair[1])])
@pytest.mark.parametrize("command", ["evaluate", "inspect", "backtest"])
def test_what_is_invisible_is_marked_and_warned_of(command, label, tmp_path):
    log = write(tmp_path / "log.csv", LOG.replace("\na,", f"\n{label},").replace("\nb,", "\nnew,"))
    target = () if command == "backtest" else ("--target", write(tmp_path / "t.csv", POLICY))
    done = run(command, log, *target, "--ends", "truncated", "--full")
    assert done.exit_code == 0, done.stderr
    assert not INVISIBLE.search(done.output)
    assert "[U+" in done.stdout
    assert "look alike" in " ".join(done.output.split())
    assert json.dumps(label)[1:-1] in json.dumps(json_of(command, log, *target, "--ends", "truncated"))


def test_targets_whose_names_look_alike_are_marked(tmp_path):
    log, policy = write(tmp_path / "log.csv", LOG), write(tmp_path / "t.csv", POLICY)
    names = (f"new={policy}", f"new\u200b={policy}")
    shown = run("compare", log, *(word for name in names for word in ("--target", name)), "--ends", "truncated").output
    assert "new[U+200B]" in shown


def test_a_page_marks_them_too(tmp_path):
    log = write(tmp_path / "log.csv", LOG.replace("\na,", "\nnew\u200b,").replace("\nb,", "\nnew,"))
    target, page = write(tmp_path / "t.csv", POLICY), tmp_path / "page.html"
    assert run("evaluate", log, "--target", target, "--ends", "truncated", "--html", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "new[U+200B]" in text
    assert "\u200b" not in text


def test_scripts_and_emoji_keep_their_joiners():
    for text in ("👩\u200d💻", "می\u200cخواهم", "❤\ufe0f", "größer", "中"):
        assert clean(text) == text


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """A log of many loggers."""
    folder = tmp_path_factory.mktemp("crowd")
    rows = [
        f"logger-{i},{2 * i + j},{k},{k % 2},{(i + k) % 2},{k},{(k + 1) % 2},{int(k == 2)}"
        for i in range(300)
        for j in range(2)
        for k in range(3)
    ]
    head = "policy_id,episode_id,step,observation,action,reward,next_observation,terminated\n"
    write(folder / "t.csv", POLICY)
    return write(folder / "log.csv", head + "\n".join(rows) + "\n")


@pytest.mark.parametrize("command", ["evaluate", "inspect", "backtest"])
def test_hundreds_of_loggers_do_not_fill_the_terminal(command, crowd):
    target = () if command == "backtest" else ("--target", crowd.parent / "t.csv")
    shown = run(command, crowd, *target, "--full").stdout
    assert " more" in shown
    assert len(shown) < 16_000
    assert shown.count("logger-") < 5 * SHOWN
    assert "all logs" in shown or command != "evaluate"
    whole = json.dumps(json_of(command, crowd, *target))
    assert all(f'"logger-{i}"' in whole for i in range(300))


def test_a_page_has_all_of_them(crowd, tmp_path):
    page = tmp_path / "page.html"
    assert run("evaluate", crowd, "--target", crowd.parent / "t.csv", "--html", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert all(f"logger-{i}<" in text or f"logger-{i} " in text for i in range(300))


def test_a_label_of_thousands_of_characters_is_shortened(tmp_path):
    log = write(tmp_path / "log.csv", LOG.replace("\na,", f"\n{'x' * 5_000},"))
    shown = run("inspect", log, "--ends", "truncated", "--full").stdout
    assert "more characters" in " ".join(shown.split())
    assert len(shown) < 8_000
    assert mixope.inspect(mixope.read(log, ends="truncated")).contents.loggers[1].label == "x" * 5_000


def test_what_fits_is_not_shortened():
    assert shortened("x" * 1_200) == "x" * 1_200
