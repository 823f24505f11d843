"""docs/architecture.md: it links what is there, and names every part of the tree."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
PAGE: Final = ROOT / "docs/architecture.md"
TEXT: Final = PAGE.read_text("utf-8")
MOST_LINES: Final = 160
_LINK: Final = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)")
_CODE: Final = re.compile(r"`([^`]+)`")


def project() -> dict[str, Any]:
    """What `pyproject.toml` says."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def section(title: str) -> str:
    """The text below a heading."""
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_cells(text: str) -> list[str]:
    """The first cell of each row of tables, their heads included."""
    return [
        line.split("|")[1].strip() for line in re.findall(r"^\|.*", text, re.MULTILINE)
    ]


def names_in(path: Path) -> set[str]:
    """What a module defines, methods by `Class.method`."""
    return set(_names(ast.parse(path.read_text("utf-8")).body, ""))


def _names(body: list[ast.stmt], within: str) -> Iterator[str]:
    for each in body:
        match each:
            case ast.ClassDef(name=name):
                yield within + name
                yield from _names(each.body, f"{within}{name}.")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield within + name
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield within + name


def faults(text: str) -> list[str]:
    """Links of a page in `docs` that lead nowhere.

    Words of code in a link are the end of its address, or names that its module
    defines.
    """
    found = []
    for words, address in _LINK.findall(text):
        path = PAGE.parent / address
        if not path.exists():
            found.append(address)
            continue
        names = {name for name in _CODE.findall(words) if not address.endswith(name)}
        if names and not (path.suffix == ".py" and names <= names_in(path)):
            found.append(f"{address}: {words}")
    return found


def test_every_link_leads_somewhere() -> None:
    """To a file or folder, and to what it names there."""
    assert len(_LINK.findall(TEXT)) > 100
    assert faults(TEXT) == []


@pytest.mark.parametrize(
    "link",
    [
        "[nothing](../appliance/nothing.py)",
        "[page](nothing.md#there)",
        "[`Signing.sing`](../appliance/signing/sign.py)",
        "[`sign`](../appliance/signing/sign.py)",
        "[`key_interrupted`, `nothing`](../appliance/signing/claims.py)",
        "[`worker/pdf`](../worker/pades)",
    ],
)
def test_link_that_leads_nowhere_is_noticed(link: str) -> None:
    """A file, a page, a function, a method, one of two, a folder."""
    assert len(faults(link)) == 1


def test_every_command_of_the_tests_is_there() -> None:
    """What `python -m` is to run."""
    modules = re.findall(r"python -m (tests[\w.]+)", TEXT)

    assert len(modules) > 4
    for module in modules:
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), module


def test_every_folder_is_named() -> None:
    """Those of the tree, but for what tools leave there."""
    ignored = (ROOT / ".gitignore").read_text("utf-8").split()
    folders = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir()
        and not path.name.startswith(".")
        and not any(fnmatch(f"{path.name}/", pattern) for pattern in ignored)
    }

    assert {"appliance", "tests", "systemd"} <= folders
    named = {name.partition("/")[0] for name in _CODE.findall(TEXT)}
    assert folders - named == set()


@pytest.mark.parametrize("root", ["appliance", "worker"])
def test_every_package_has_one_row(root: str) -> None:
    """Those of `appliance` and of `worker`."""
    packages = {
        f"{root}/{path.parent.name}" for path in (ROOT / root).glob("*/__init__.py")
    }
    rows = Counter(
        name
        for cell in first_cells(section("Layers"))
        for name in _CODE.findall(cell)
        if name.startswith(f"{root}/")
    )

    assert len(packages) > 5
    assert rows == Counter(packages)


def test_layers_are_those_of_the_contract() -> None:
    """In its order: what import-linter holds is what the page says."""
    (layers,) = (
        contract["layers"]
        for contract in project()["tool"]["importlinter"]["contracts"]
        if contract["name"] == "Inside the appliance"
    )
    told = [
        set(_CODE.findall(cell))
        for cell in first_cells(section("Layers"))
        if cell.startswith("[`appliance/")
    ]

    assert told == [set(layer.replace(".", "/").split(" | ")) for layer in layers]


def test_roles_are_those_of_the_project() -> None:
    """Each with the function that it starts in."""
    rows = re.findall(
        r"^\| `(\w+)` \| \[`(\w+)`\]\(\.\./([\w/]+)\.py\)",
        section("Processes"),
        re.MULTILINE,
    )
    told = {role: f"{path.replace('/', '.')}:{name}" for role, name, path in rows}

    assert told == project()["project"]["entry-points"]["rubrica.roles"]


def test_it_stays_one_page_and_the_path_short() -> None:
    """The path of a signature has fifteen steps, one a line."""
    steps = re.findall(
        r"^(\d+)\. ", section("The path of `POST /solicitudes/firmar`"), re.MULTILINE
    )

    assert [int(step) for step in steps] == list(range(1, 16))
    assert len(TEXT.splitlines()) <= MOST_LINES
