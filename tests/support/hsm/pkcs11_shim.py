"""Drives `pkcs11_shim.c`: a PKCS#11 module that fails as it is told to.

    shim = Pkcs11Shim(folder, softhsm.module)
    with shim.fault("C_Sign", "code", CKR_DEVICE_ERROR, times=2):
        …                                   # of all processes, the next two
    assert shim.count("C_Sign") == 5

Processes load `shim.path` and have `shim.environment`; rules hold for all of them
from the next call on.
"""

import json
import mmap
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tests.support.processes.setup_cache import prepared

_SOURCE: Final = Path(__file__).with_suffix(".c")
_MODULE: Final = "pkcs11-shim.so"
_HEADERS: Final = "/usr/include/p11-kit-1"
FUNCTIONS: Final = (
    "C_Initialize",
    "C_GetSlotList",
    "C_OpenSession",
    "C_Login",
    "C_FindObjectsInit",
    "C_FindObjects",
    "C_SignInit",
    "C_Sign",
    "C_GenerateKey",
    "C_GenerateKeyPair",
    "C_WrapKey",
    "C_UnwrapKey",
    "C_DestroyObject",
    "C_GetAttributeValue",
    "C_GenerateRandom",
)
"""What is counted and may be disturbed, in the order of the C source."""
_VARIABLES: Final = """\
#include <stdlib.h>
__attribute__((constructor)) static void set(void)
{{
{lines}
}}
"""
_RULES: Final = 4096
_WORD: Final = 8
Action = Literal["code", "lose", "delay", "play", "hang", "abort"]
"""See the C source."""
FOREVER: Final = -1


@dataclass(frozen=True, slots=True)
class Signed:
    """One C_Sign that the real module did."""

    token: str
    """Label."""
    key: str
    """CKA_ID in hex, or `-`."""
    data: bytes


def build(folder: Path, variables: Mapping[str, str] | None = None) -> Path:
    """The shim in a folder, compiled once a run; the path of the module.

    Args:
        folder: existing.
        variables: what it has without its process's environment.
    """
    if variables is None and (made := prepared("pkcs11-shim", _compile)) is not None:
        return Path(shutil.copy2(made / _MODULE, folder))
    return _compile(folder, variables)


def _compile(folder: Path, variables: Mapping[str, str] | None = None) -> Path:
    path, sources = folder / _MODULE, [_SOURCE]
    if variables is not None:
        own = folder / "variables.c"
        lines = (
            f"setenv({json.dumps(k)}, {json.dumps(v)}, 1);"
            for k, v in variables.items()
        )
        own.write_text(_VARIABLES.format(lines="\n".join(lines)))
        sources.append(own)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O2", f"-I{_HEADERS}", "-o", path, *sources],
        check=True,
    )
    return path


class Pkcs11Shim:
    """A shim of its own folder around a real module.

    Args:
        folder: existing and private; the module and its control files go there.
        module: the real one.
        params: its parameter string for C_Initialize, where it wants one (NSS).
    """

    def __init__(self, folder: Path, module: Path, params: str | None = None) -> None:
        self.path = build(folder)
        self._folder = folder / "pkcs11-shim"
        self._folder.mkdir()
        self._rules = self._folder / "rules"
        self._rules.touch()
        self._signed = self._folder / "signed"
        counts = self._folder / "counts"
        counts.write_bytes(bytes(_WORD * (len(FUNCTIONS) + _RULES + 2)))
        with counts.open("r+b") as file:
            self._counts = mmap.mmap(file.fileno(), 0)
        self.environment = {
            "PKCS11_SHIM_MODULE": str(module),
            "PKCS11_SHIM_CONTROL": str(self._folder),
        }
        if params is not None:
            self.environment["PKCS11_SHIM_PARAMS"] = params
        self._active: dict[int, str] = {}
        self._made = 0

    @contextmanager
    def fault(
        self,
        function: str,
        action: Action,
        value: int = 0,
        *,
        at: str = "*",
        times: int = FOREVER,
    ) -> Iterator[int]:
        """Disturb a function for a while.

        Args:
            function: one of `FUNCTIONS`, or `*`.
            action: what happens.
            value: CKR number, or milliseconds of a `delay` or `play`.
            at: token's label, `-` for calls of no token, or `*`.
            times: how many calls of all processes, or `FOREVER`.

        Yields:
            Number of the rule, for `used`.
        """
        rule = self.order(function, action, value, at=at, times=times)
        try:
            yield rule
        finally:
            self.withdraw(rule)

    def order(
        self,
        function: str,
        action: Action,
        value: int = 0,
        *,
        at: str = "*",
        times: int = FOREVER,
    ) -> int:
        """Disturb a function until `withdraw`; see `fault`."""
        assert function == "*" or function in FUNCTIONS
        rule = self._made
        self._made += 1
        assert rule < _RULES
        self._active[rule] = f"{rule} {function} {at} {action} {value} {times}\n"
        self._write()
        return rule

    def withdraw(self, rule: int) -> None:
        """End a rule."""
        del self._active[rule]
        self._write()

    def _write(self) -> None:
        # Whole or not at all: a call in any process may read it just now.
        new = self._rules.with_suffix(".new")
        new.write_text("".join(self._active.values()), "ascii")
        new.rename(self._rules)

    def count(self, function: str) -> int:
        """How often a function was called, by any process, faults included."""
        return self._word(FUNCTIONS.index(function))

    def used(self, rule: int) -> int:
        """How often a rule's function was called while the rule held."""
        return self._word(len(FUNCTIONS) + rule)

    def starts(self) -> tuple[int, int]:
        """How often it was started for one thread, and for several, by any process."""
        end = len(FUNCTIONS) + _RULES
        return self._word(end), self._word(end + 1)

    def _word(self, index: int) -> int:
        (value,) = struct.unpack_from("=Q", self._counts, index * _WORD)
        return int(value)

    def signed(self) -> list[Signed]:
        """Every C_Sign that the real module did, oldest first."""
        if not self._signed.exists():
            return []
        rows = (line.split() for line in self._signed.read_text("ascii").splitlines())
        return [Signed(token, key, bytes.fromhex(data)) for token, key, data in rows]
