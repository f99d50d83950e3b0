"""Progress of a run in words, and the line in which it is shown."""

import functools
import re

from pytest_kbrel.plugin.progress import Progress, StatusLine
from pytest_kbrel.store.run_store import AnswerCounts, RunStore


def counts(case, answered, *, reused=0):
    of = AnswerCounts()
    of.begin([f"s.kb.yaml::{case}"] * 1000)
    of.add(reused, False)
    of.add(answered, True)
    return of


def test_a_line_says_the_case_its_answers_the_rate_and_the_time_left():
    progress = Progress()
    progress.expect({"s.kb.yaml::monitor[P17]": 2600, "s.kb.yaml::monitor[P36]": 400})
    of = counts("monitor[P17]", 0)
    assert progress.text([of], 10.0) == "monitor[P17] 0/2,600  case 1 of 2"
    of.add(620, True)
    assert (
        progress.text([of], 30.0)
        == "monitor[P17] 620/2,600  31/s  case 1 of 2  about 77 s left"
    )


def test_it_is_told_how_long_nothing_was_answered():
    progress = Progress()
    progress.expect({"s.kb.yaml::a": 100, "s.kb.yaml::b": 100})
    of = counts("a", 0)
    assert progress.text([of], 0.0) == "a 0/100  case 1 of 2"
    assert progress.text([of], 29.0) == "a 0/100  case 1 of 2"
    assert progress.text([of], 40.0) == "a 0/100  no answer for 40 s  case 1 of 2"
    of.add(50, True)
    assert progress.text([of], 50.0) == "a 50/100  1/s  case 1 of 2  about 2 min left"
    # The rate of the last minute says nothing of how long it will take now.
    assert progress.text([of], 90.0) == "a 50/100  no answer for 40 s  case 1 of 2"
    # Nor does an answer of the cache count as silence, or another case.
    of.add(1, False)
    assert "no answer" not in progress.text([of], 130.0)
    progress.end("s.kb.yaml::a")
    of.begin(["s.kb.yaml::b"])
    assert "no answer" not in progress.text([of], 180.0)


def test_a_worker_that_has_ended_asks_nothing_any_more(tmp_path):
    store, other = (RunStore(tmp_path / "run.sqlite") for _ in range(2))
    store.end_counting("gw0")
    assert store.counts() == []
    of = AnswerCounts(publish=functools.partial(other.count, "gw0"))
    of.begin(["s.kb.yaml::a"] * 40)
    of.add(40, True)
    of.begin(["s.kb.yaml::b"])
    store.end_counting("gw0")
    (dead,) = store.counts()
    assert (dead.current, dead.asked, dead.answered["s.kb.yaml::a"]) == ("", 40, 40)
    progress = Progress()
    progress.expect({f"s.kb.yaml::{name}": 100 for name in "abc"})
    assert progress.text([dead, counts("c", 10)], 0.0).startswith(
        "c 10/100  case 1 of 3"
    )


class Terminal:
    """Terminal of some rows that knows the sequences of the status line."""

    def __init__(self, height=4):
        self.rows = [""]
        self.row, self.column, self.height = 0, 0, height

    def write(self, text):
        for part in re.findall(r"\x1b\[\d*[A-Z]|\n|\r|[^\x1b\r\n]+", text):
            if part == "\n":
                # A terminal's driver adds the return.
                self.row, self.column = self.row + 1, 0
                self.rows += [""] * (self.row + 1 - len(self.rows))
            elif part == "\r":
                self.column = 0
            elif part == "\x1b[2K":
                self.rows[self.row] = ""
            elif part == "\x1b[J":
                self.rows[self.row] = self.rows[self.row][: self.column]
                del self.rows[self.row + 1 :]
            elif part == "\x1b[1A":
                self.row -= 1
            elif part.startswith("\x1b["):
                self.column += int(part[2:-1])
            else:
                line = self.rows[self.row].ljust(self.column)
                self.rows[self.row] = (
                    line[: self.column] + part + line[self.column + len(part) :]
                )
                self.column += len(part)


def test_the_line_stands_below_the_cursor_and_goes_without_a_trace():
    terminal = Terminal()
    line = StatusLine("line", terminal.write, lambda: terminal.column, started=0.0)
    terminal.write("suite ..")
    line.show("one of three", width=80, now=1.0)
    assert terminal.rows == ["suite ..", "one of three"]
    line.show("two", width=80, now=2.0)
    assert terminal.rows == ["suite ..", "two"]
    line.hide()
    terminal.write(".")
    assert terminal.rows == ["suite ..."]
    line.show("a line that is too wide", width=10, now=3.0)
    assert terminal.rows == ["suite ...", "a line t…"]
    line.show("", width=10, now=4.0)
    assert terminal.rows == ["suite ..."]


def test_a_log_has_a_line_soon_and_then_one_a_minute():
    terminal = Terminal()
    line = StatusLine("log", terminal.write, lambda: terminal.column, started=0.0)
    terminal.write("suite ..")
    assert not line.show("one", width=80, now=14.0)
    assert not line.show("", width=80, now=15.0)
    assert line.show("two", width=80, now=16.0)
    assert not line.show("three", width=80, now=75.0)
    assert line.show("four", width=80, now=76.0)
    line.hide()
    assert terminal.rows == ["suite ..", "kbrel: two", "kbrel: four", ""]
