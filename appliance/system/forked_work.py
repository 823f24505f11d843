"""Work that a child does, for its result alone."""

import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn


@dataclass(frozen=True, slots=True)
class ForkedWork:
    """Work that a child does, which takes with it all that it loaded for that.

    result = ForkedWork.begun(work).result()
    """

    pid: int
    reader: int
    """The descriptor that the result comes from."""

    @classmethod
    def begun(cls, work: Callable[[], bytes]) -> "ForkedWork":
        """Begin, where no other thread runs: of those the child has none.

        Args:
            work: gives its result, of any length.
        """
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(reader)
            _give(work, writer)
        os.close(writer)
        return cls(pid, reader)

    def result(self) -> bytes:
        """Wait for the result; call it once.

        Raises:
            ChildProcessError: there is none; the child has told why.
        """
        with os.fdopen(self.reader, "rb") as result:
            given = result.read()
        _, status = os.waitpid(self.pid, 0)
        if status:
            msg = f"a child ended with status {os.waitstatus_to_exitcode(status)}"
            raise ChildProcessError(msg)
        return given


def _give(work: Callable[[], bytes], writer: int) -> NoReturn:
    """Write a result, and end this process; the parent's clean-up is not its own."""
    status = 70  # EX_SOFTWARE
    try:
        with os.fdopen(writer, "wb") as result:
            result.write(work())
        status = 0
    except BrokenPipeError:
        pass  # nobody waits for it any more
    except BaseException:  # noqa: BLE001 (the outermost shell of the process)
        traceback.print_exc()
    os._exit(status)
