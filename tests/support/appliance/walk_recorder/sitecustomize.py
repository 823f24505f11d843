"""Python imports this at its start where this folder is on its path (`walk.py`).

Records which of our own functions are entered, in every thread. SIGUSR2 has a process
write what was entered since it was last asked, to `<pid>.json` in the folder that the
environment names, and forget it.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import CodeType, FrameType

_FOLDER = os.environ.get("RUBRICA_TEST_WALK")
_ROOT = Path(__file__).parents[4]
_OURS = tuple(
    f"{_ROOT}/{name}/"
    for name in ("appliance", "worker", "hsm_config", "admin_ui", "embed")
)
_NOT_FUNCTIONS = frozenset(
    {"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
)


class _Recorder:
    """Notes the first entry of each function since it was last told to tell."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entered: dict[CodeType, int] = {}
        self._others: set[CodeType] = set()

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Hear of a call, a return, …; what a profile function is called with."""
        code = frame.f_code
        if event != "call" or code in self._entered or code in self._others:
            return
        # A function's variables are its own (CO_OPTIMIZED); a class's body is none.
        function = code.co_flags & 0x01 and code.co_name not in _NOT_FUNCTIONS
        if function and code.co_filename.startswith(_OURS):
            self._entered[code] = time.monotonic_ns()
        else:
            self._others.add(code)

    def tell(self, *_: object) -> None:
        """Write what was entered, in order: when, in which file, which function."""
        entered, self._entered = self._entered, {}
        lines = [
            [at, code.co_filename.removeprefix(f"{_ROOT}/"), code.co_qualname]
            for code, at in entered.items()
        ]
        part = self._folder / f"{os.getpid()}.part"
        part.write_text(json.dumps(lines), "utf-8")
        part.rename(self._folder / f"{os.getpid()}.json")


if _FOLDER:
    _recorder = _Recorder(Path(_FOLDER))
    signal.signal(signal.SIGUSR2, _recorder.tell)
    threading.setprofile(_recorder.note)
    sys.setprofile(_recorder.note)
