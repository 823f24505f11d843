"""Has the SDKs be built before the tests that serve them, where sources are newer."""

import subprocess
import sys
from pathlib import Path

import pytest

from appliance.web import sdk

_SOURCES = Path(__file__).resolve().parents[3] / "sdk"


def pytest_configure(config: pytest.Config) -> None:
    """Build them once for a run, not in each of its processes."""
    if not hasattr(config, "workerinput") and _is_stale():
        subprocess.run([sys.executable, str(_SOURCES / "build.py")], check=True)


def _is_stale() -> bool:
    index = sdk.FILES / sdk.INDEX
    if not index.exists():
        return True
    sources = (path for path in _SOURCES.rglob("*") if path.suffix != ".pyc")
    newest = max(path.stat().st_mtime for path in sources if path.is_file())
    return newest > index.stat().st_mtime
