"""A command at a terminal, whose questions somebody answers.

    done = at_terminal(command, {"Environment": ["TEST", "PROD"]})
    done.status, done.told, done.asked

Every other question is answered by Enter alone. Source: pty(7).
"""

import os
import pty
import select
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

_LONGEST_S: Final = 120.0
_AGAIN_S: Final = 2.0
"""Somebody whose Ctrl-C does nothing presses it again after so long."""
_PROMPT: Final = b"]: "
_PIECE: Final = 4096
ENTER: Final = ""
CTRL_C: Final = "\x03"
CTRL_D: Final = "\x04"


@dataclass
class Dialogue:
    """What was said at a terminal, and how it ended."""

    told: str = ""
    """All of it, questions and what was typed among it."""
    asked: list[str] = field(default_factory=list)
    """Each question with what it offers, in order."""
    status: int = 0
    """As of a shell: negative by a signal."""


def at_terminal(
    command: Sequence[str],
    typed: Mapping[str, Sequence[str]],
    environment: Mapping[str, str] | None = None,
) -> Dialogue:
    """Run a command at a terminal to its end.

    Args:
        command: program, by its whole path, and arguments.
        typed: by how a question begins, what is typed the first, second … time that
            it is asked; `CTRL_C` and `CTRL_D` are pressed, all else ends by Enter.
        environment: all of it; by default that of this process.

    Raises:
        AssertionError: it neither asks nor ends within two minutes.
    """
    variables = dict(os.environ if environment is None else environment)
    left = {question: list(answers) for question, answers in typed.items()}
    pid, handle = pty.fork()
    if pid == 0:
        # A run in the background has it ignored; what a login shell starts has not.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execve(command[0], list(command), variables)  # noqa: S606 (no shell)
    done = Dialogue()
    try:
        _talk(handle, left, done)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(handle)
        _, status = os.waitpid(pid, 0)
    done.status = os.waitstatus_to_exitcode(status)
    return done


def _talk(handle: int, left: Mapping[str, list[str]], done: Dialogue) -> None:
    """Answer until the other end is closed."""
    said, since, pressed = b"", 0, b""
    deadline = time.monotonic() + _LONGEST_S
    while True:
        ready, _, _ = select.select([handle], [], [], _AGAIN_S)
        if not ready:
            told = said.decode(errors="replace")
            assert time.monotonic() < deadline, f"neither asks nor ends: {told}"
            if pressed == CTRL_C.encode():
                # Between a question and its read, Python notes a signal and reads on.
                os.write(handle, pressed)
            continue
        try:
            piece = os.read(handle, _PIECE)
        except OSError:
            # Linux says so (EIO) when nobody has the other end open any more.
            piece = b""
        if not piece:
            done.told = said.decode().replace("\r\n", "\n")
            return
        said += piece
        if said.endswith(_PROMPT) and len(said) > since:
            since = len(said)
            question = said.decode().splitlines()[-1].rstrip()
            done.asked.append(question)
            pressed = _answer(question, left)
            os.write(handle, pressed)


def _answer(question: str, left: Mapping[str, list[str]]) -> bytes:
    """What is typed at a question."""
    answers = next(
        (each for begin, each in left.items() if question.startswith(begin)), []
    )
    answer = answers.pop(0) if answers else ENTER
    return (answer if answer in {CTRL_C, CTRL_D} else f"{answer}\n").encode()
