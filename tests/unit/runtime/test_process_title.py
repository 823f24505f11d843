"""What `ps` and `top` show of a role."""

import subprocess
import sys

import pytest

from appliance.runtime.process_title import short_name

PROGRAM = """\
import os, subprocess, sys
from appliance.runtime.process_title import set_title
set_title(sys.argv[1])
shown = subprocess.run(
    ["ps", "-o", "args=", "-o", "comm=", "-ww", "-p", str(os.getpid())],
    capture_output=True, text=True, check=True,
)
print(shown.stdout.split("\\n")[0])
print(os.environ["HOME"])
"""


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("signing-1", "rubrica:signi-1"),
        ("signing-12", "rubrica:sign-12"),
        ("sandbox", "rubrica:sandbox"),
        ("api", "rubrica:api"),
    ],
)
def test_title_tells_the_role_and_its_number(name: str, short: str) -> None:
    """Both the arguments and the short name; the environment stays as it was."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name],
        env={"HOME": "/nowhere", "PATH": "/usr/bin:/bin"}
        | {"PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )

    title, home = done.stdout.splitlines()
    assert title.split() == ["rubrica:", name, short]
    assert home == "/nowhere"
    assert short_name(name) == short


def test_title_longer_than_the_arguments_is_cut() -> None:
    """It never runs into what lies behind them."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "x" * 5000],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.startswith("rubrica: xxx")
