"""The log's lines, as systemd's journal takes them, and what they may say."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.runtime import logging
from appliance.web import request_log as web_log

PROGRAM = """
import logging, sys
import structlog
from appliance.runtime.logging import configure_logging
from appliance.settings import LogSettings
configure_logging(LogSettings(format=sys.argv[1], level="debug"), "api")
log = structlog.get_logger("x")
log.debug("a")
log.info("b")
log.warning("c")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("d")
logging.getLogger("library").warning("e")
"""


def lines_of(folder: Path, kind: str, *, journal: bool) -> list[str]:
    """What a process logs whose standard error is the journal, or another file."""
    log = folder / "log"
    with log.open("wb") as file:
        found = os.fstat(file.fileno())
        name = f"{found.st_dev}:{found.st_ino if journal else 0}"
        subprocess.run(
            [sys.executable, "-c", PROGRAM, kind],
            env={**os.environ, "JOURNAL_STREAM": name},
            stderr=file,
            check=True,
        )
    return log.read_text("utf-8").splitlines()


def test_journal_gets_priorities_and_one_entry_an_event(tmp_path: Path) -> None:
    """As JSON each event is one line, its traceback a field."""
    lines = lines_of(tmp_path, "json", journal=True)

    assert [line[:3] for line in lines] == ["<7>", "<6>", "<4>", "<3>", "<4>"]
    events = [json.loads(line[3:]) for line in lines]
    assert [event["event"] for event in events] == ["a", "b", "c", "d", "e"]
    assert events[3]["exception"][0]["exc_type"] == "ZeroDivisionError"


def test_text_has_its_priority_on_every_line(tmp_path: Path) -> None:
    """A traceback's lines are errors, too."""
    lines = lines_of(tmp_path, "text", journal=True)

    traceback = [line for line in lines if line.startswith("<3>")]
    assert "ZeroDivisionError" in traceback[-1]
    assert all(line[:3] in {"<3>", "<4>", "<6>", "<7>"} for line in lines)


@pytest.mark.parametrize("kind", ["json", "text"])
def test_others_get_the_line_alone(tmp_path: Path, kind: str) -> None:
    """A terminal, a file or a container's log."""
    lines = lines_of(tmp_path, kind, journal=False)

    assert lines
    assert not [line for line in lines if line.startswith("<")]


_ROOT = Path(__file__).resolve().parents[3]
_PACKAGES = ("appliance", "worker", "admin_ui", "embed", "hsm_config")
_METHODS = {"debug", "info", "warning", "error", "exception", "tell"}
UNLISTED = """
import structlog
from appliance.runtime.logging import configure_logging
from appliance.settings import LogSettings
configure_logging(LogSettings(format="json"), "api")
structlog.contextvars.bind_contextvars(requestId="r1", password="no")
structlog.get_logger("x").info("a", request=1, pin="1234")
"""


HOSTILE = "a\x1b[2Jb\u202ec\nd\x85e\u2028f\x00g\U000e0001h ñ 日"
SHOWN = r"a\x1b[2Jb\u202ec\nd\x85e\u2028f\x00g\U000e0001h ñ 日"


@pytest.mark.parametrize("kind", ["json", "text"])
def test_line_shows_what_others_wrote(tmp_path: Path, kind: str) -> None:
    """No terminal obeys it, it turns no direction, and it ends no line."""
    program = f"""
{PROGRAM.partition("log.debug")[0]}
try:
    raise ValueError({HOSTILE!r})
except ValueError:
    log.exception({HOSTILE!r}, name={HOSTILE!r}, documents=[{{"k": {HOSTILE!r}}}])
logging.getLogger("library").warning({HOSTILE!r})
"""
    log = tmp_path / "log"
    with log.open("wb") as file:
        subprocess.run([sys.executable, "-c", program, kind], stderr=file, check=True)
    text = log.read_text("utf-8")

    assert all(char.isprintable() or char == "\n" for char in text)
    if kind == "json":
        events = [json.loads(line) for line in text.split("\n")[:-1]]
        assert [event["event"] for event in events] == [SHOWN, SHOWN]
        assert (events[0]["name"], events[0]["documents"]) == (SHOWN, [{"k": SHOWN}])
        assert events[0]["exception"][0]["exc_value"] == SHOWN
        assert [list(event)[:4] for event in events] == [list(logging._FIRST)] * 2
    else:
        assert text.count("ValueError: a\\x1b") == 1
        assert "\nd" not in text


def test_field_that_is_not_listed_is_left_out() -> None:
    """Whoever bound it; its name is told, its value is not."""
    done = subprocess.run(
        [sys.executable, "-c", UNLISTED], capture_output=True, text=True, check=True
    )
    line = json.loads(done.stderr)
    assert line["unlisted"] == ["password", "pin"]
    assert (line["requestId"], line["request"]) == ("r1", 1)
    assert "1234" not in done.stderr
    assert '"no"' not in done.stderr


def _fields() -> Iterator[tuple[str, str]]:
    """Each field that our code names in a line, with where."""
    for package in _PACKAGES:
        for path in (_ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if not isinstance(node, ast.Call):
                    continue
                called = node.func
                if isinstance(called, ast.Attribute) and called.attr in _METHODS:
                    # `_log`, `self._full` …: what has such a method is a log.
                    for keyword in node.keywords:
                        if keyword.arg is not None:
                            yield keyword.arg, f"{path.name}:{node.lineno}"


def test_every_field_of_our_lines_is_listed() -> None:
    """None is lost for want of a place in the list."""
    found = set(_fields())
    assert len(found) > 50
    assert [each for each in found if each[0] not in logging.FIELDS] == []
    # These are the line's own: what else is given by such a name is written over.
    own = {"level", "timestamp", "role"}
    assert [each for each in found if each[0] in own] == []
    assert web_log.FIELDS <= logging.FIELDS
