"""A TOML file that an operator wrote: its keys, or what is wrong with it."""

import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from appliance.settings.section import SettingsError


def read_toml(path: Path) -> dict[str, Any]:
    """What it says.

    Raises:
        SettingsError: it cannot be read, or is no TOML.
    """
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
        faults = [f"{path}: {key}: has a NUL in it" for key in _with_nul(raw)]
    except OSError as exc:
        msg = f"{path}: cannot be read ({exc.strerror})"
        raise SettingsError(msg) from exc
    except (ValueError, RecursionError) as exc:
        # TOML's, UTF-8's; or thousands of digits in a row, or of tables in tables.
        msg = f"{path}: not valid TOML ({exc})"
        raise SettingsError(msg) from exc
    refuse(faults)
    return raw


def _with_nul(found: object, at: str = "") -> Iterator[str]:
    """Keys of texts with U+0000, which no path, argument or database takes."""
    inner: Iterable[tuple[str, object]] = ()
    if isinstance(found, dict):
        inner = found.items()
    elif isinstance(found, list):
        inner = ((str(number), each) for number, each in enumerate(found))
    for key, value in inner:
        yield from _with_nul(value, f"{at}.{key}".lstrip("."))
    if isinstance(found, str) and "\0" in found:
        yield at


def faults_in(
    path: Path,
    raw: Mapping[str, Any],
    known: Collection[str],
    wrong: Callable[[str, Any], str],
) -> list[str]:
    """What is wrong with keys and values of a file, each fault in a line.

    Args:
        path: its name.
        raw: what it says.
        known: its keys.
        wrong: what a known key's value would have to be; empty where it is that.
    """
    return [
        f"{path}: {key}: {told}"
        for key, value in raw.items()
        if (
            told := wrong(key, value)
            if key in known
            else f"unknown key; allowed here: {', '.join(known)}"
        )
    ]


def refuse(faults: Collection[str]) -> None:
    """Refuse a file for what is wrong with it, if anything is.

    Raises:
        SettingsError: each fault in a line.
    """
    if faults:
        raise SettingsError("\n".join(faults))
