"""rubrica-client as a package: it stands by itself, and installs anywhere."""

import ast
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path
from typing import Any, Final

import pytest

from appliance.web import sdk

ROOT: Final = Path(__file__).resolve().parents[3]
SOURCES: Final = ROOT / "sdk/python/src/rubrica_client"


def project(folder: Path) -> dict[str, Any]:
    """What a `pyproject.toml` says of its project."""
    text = (folder / "pyproject.toml").read_text("utf-8")
    told: dict[str, Any] = tomllib.loads(text)["project"]
    return told


def imported() -> set[str]:
    """The packages that the client's modules import."""
    found = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add((node.module or "").partition(".")[0])
    return found


def test_client_needs_nothing_of_ours() -> None:
    """Only what its `pyproject.toml` names."""
    needed = {
        each.partition(">")[0] for each in project(ROOT / "sdk/python")["dependencies"]
    }

    assert imported() - sys.stdlib_module_names == needed | {"rubrica_client"}


def test_it_says_version_and_licence_of_the_project() -> None:
    """One version for all that is built of one tree."""
    own, ours = project(ROOT / "sdk/python"), project(ROOT)

    for name in ("version", "license", "requires-python"):
        assert own[name] == ours[name]


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The built one."""
    (found,) = sdk.FILES.glob("*.whl")
    return found


def test_wheel_is_typed_and_licensed(wheel: Path) -> None:
    """All modules, `py.typed`, the licence, and nothing else of the tree."""
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {f"rubrica_client/{path.name}" for path in SOURCES.glob("*.py")}

    assert {name for name in names if name.startswith("rubrica_client/")} == {
        *modules,
        "rubrica_client/py.typed",
    }
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_same_sources_give_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """Byte for byte, wherever it is built."""
    build = [sys.executable, str(ROOT / "sdk/build.py"), str(tmp_path / "again")]
    subprocess.run(build, check=True)

    assert (tmp_path / "again" / wheel.name).read_bytes() == wheel.read_bytes()
    index = (tmp_path / "again" / sdk.INDEX).read_bytes()
    assert index == (sdk.FILES / sdk.INDEX).read_bytes()


def test_wheel_installs_and_imports(wheel: Path, tmp_path: Path) -> None:
    """In an environment that is new; what it needs is lent to it."""
    place = tmp_path / "venv"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(place)], check=True
    )
    python = place / "bin/python"
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", str(python), "install"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True)
    code = (
        f"import sys; sys.path.append({sysconfig.get_path('purelib')!r});"
        "import rubrica_client; print(rubrica_client.__file__)"
    )
    done = subprocess.run(
        [python, "-I", "-c", code], check=True, capture_output=True, text=True
    )

    assert done.stdout.startswith(str(place))
