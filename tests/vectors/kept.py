"""Golden vectors as they are kept: files of cases, and names that never change.

A format says how bytes come about; its file holds what an earlier tree made of known
inputs. Nothing here knows the product: `tests.vectors.adapters` does.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest import mock

Given = Mapping[str, Any]
"""Inputs of a case: plain JSON, bytes in hex, times in ISO 8601."""

FOLDER: Final = Path(__file__).parent
FORMATS: Final = FOLDER / "formats"
NAMES: Final = FOLDER / "names"
WIRE: Final = FOLDER / "wire"
PARTS: Final = FOLDER / "parts"


@dataclass(frozen=True, slots=True)
class Format:
    """How something that is stored or sent is written and read."""

    says: str
    """What it is, for the file's head."""
    cases: Mapping[str, Given]
    """Inputs by name of the case."""
    write: Callable[[Given], Any] | None = None
    """What must come out the same to the byte; random bytes are `fixed` meanwhile."""
    seal: Callable[[Given], Any] | None = None
    """What is another one each time, whatever is fixed."""
    read: Callable[[Given, Any], Any] | None = None
    """What is read of the sealed, or else of the written."""

    def made(self, given: Given) -> dict[str, Any]:
        """A case as this tree makes it."""
        case: dict[str, Any] = {"given": given}
        if self.write is not None:
            with fixed():
                case["written"] = self.write(given)
        if self.seal is not None:
            case["sealed"] = self.seal(given)
        if self.read is not None:
            case["read"] = self.read(given, stored(case))
        # As the file gives it back: tuples are lists there.
        return dict(json.loads(json.dumps(case)))


def stored(case: Mapping[str, Any]) -> Any:
    """What stands stored or was sent, of a case."""
    return case["sealed"] if "sealed" in case else case["written"]


@contextmanager
def fixed() -> Iterator[None]:
    """Have each random string depend on its length alone.

    `secrets` is where the product draws from (`random` is forbidden), `os.urandom`
    where pyHanko does; what a library draws in native code stays random.
    """

    def drawn(size: int | None = None) -> bytes:
        size = 32 if size is None else size
        return hashlib.shake_256(b"rubrica vectors").digest(size)

    def chosen(letters: Any) -> Any:
        return letters[len(letters) // 3]

    with (
        mock.patch.object(secrets, "token_bytes", drawn),
        mock.patch.object(secrets, "choice", chosen),
        mock.patch.object(os, "urandom", drawn),
    ):
        yield


def path_of(name: str) -> Path:
    """The file of a format."""
    return FORMATS / f"{name}.json"


def cases_of(name: str) -> dict[str, dict[str, Any]]:
    """What is kept of a format, by case."""
    return dict(read(path_of(name))["cases"])


def every_case() -> list[tuple[str, str]]:
    """Format and case of all that is kept."""
    names = sorted(path.stem for path in FORMATS.glob("*.json"))
    return [(name, case) for name in names for case in cases_of(name)]


def read(path: Path) -> Any:
    """What a file holds."""
    return json.loads(path.read_text("utf-8"))


def write(path: Path, value: object) -> None:
    """Write a file, in one form for the same value."""
    path.parent.mkdir(exist_ok=True)
    text = json.dumps(value, ensure_ascii=False, indent=1, sort_keys=False)
    path.write_text(text + "\n", "utf-8")
