"""The log of a command, beside what it answers."""

import subprocess
import sys

_PROGRAM = """
import structlog
from appliance.cli.terminal import log_to_stderr, say

log = structlog.get_logger()
log_to_stderr()
say("answer")
log.info("as usual")
log.warning("out of the ordinary")
password = "no-lo-digas"
try:
    raise ValueError(len(password))
except ValueError:
    log.exception("failed")
"""


def test_log_is_apart_and_tells_no_variable() -> None:
    """What is as usual is left out; a traceback has lines of code alone."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True
    )

    assert done.stdout == "answer\n"
    assert "as usual" not in done.stderr
    assert "out of the ordinary" in done.stderr
    assert "ValueError: 11" in done.stderr
    assert "no-lo-digas" not in done.stderr
