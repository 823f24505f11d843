"""Imports inside functions of the sandbox's libraries: loaded before jobs, or exempt.

Jobs are watched over many documents in `test_late_loads.py`; this finds the imports
that no document has reached yet, as after an upgrade of a library.
"""

import ast
import encodings
import pkgutil
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Final

import pytest

from appliance.system.late_imports import FACES, WORKERS
from tests.support.services.sandbox_server import running_sandbox
from worker.sandbox.prewarm import LATE

LIBRARIES: Final = {
    "PIL",
    "appliance",
    "asn1crypto",
    "cryptography",
    "dateutil",
    "idna",
    "lxml",
    "pikepdf",
    "pyhanko",
    "pyhanko_certvalidator",
    "pypdfium2",
    "tzlocal",
    "uritools",
    "worker",
}
"""Packages that jobs run. Others are loaded beside them and never called; the standard
library has too many such imports (`mbcs`, `winreg`, …) to list them."""

EXEMPT: Final = {
    "PIL.ImageFilter": "Image.filter: no job filters a picture",
    "PIL.ImageQt": "conversion for a screen",
    "PIL.ImageShow": "conversion for a screen",
    "PIL.ImageWin": "conversion for a screen",
    "dateutil.rrule": "time zones of iCalendar files",
    "dateutil.zoneinfo": "the library's own copy of the time zones",
    "defusedxml": "XMP of pictures: no job reads it",
    "numpy": "bitmaps as arrays: no job asks for them",
    "oscrypto": "trust list of the system: roots come with the request",
    "pyhanko.pdf_utils.font.opentype": "pyHanko's stamps: ours are drawn without them",
    "pyhanko.pdf_utils.images": "pyHanko's stamps",
    "pyhanko.pdf_utils.qr": "pyHanko's stamps",
    "qrcode": "pyHanko's stamps",
    "tabulate": "pypdfium2's command line",
    "worker.pades.appearance.font_cutting": "the template's child cuts fonts",
}
"""Modules that may stay unloaded, with the reason."""

OF_WINDOWS: Final = {"mbcs", "oem"}


class _Lazy(ast.NodeVisitor):
    """Collects the imports inside functions, except those for a type checker."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._depth = 0
        self.found: list[tuple[str, str | None]] = []
        """Modules, and the name that is taken from each."""

    def _visit_function(self, node: ast.AST) -> None:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1

    visit_FunctionDef = _visit_function  # noqa: N815 (of ast)
    visit_AsyncFunctionDef = _visit_function  # noqa: N815 (of ast)

    def visit_If(self, node: ast.If) -> None:
        """Skip what only a type checker sees."""
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        """Collect `import module`."""
        if self._depth:
            self.found += [(each.name, None) for each in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Collect `from module import name`."""
        if self._depth:
            module = node.module or ""
            if node.level:
                module = resolve_name("." * node.level + module, self._package)
            self.found += [(module, each.name) for each in node.names]


def lazy_imports(module: str) -> Iterator[str]:
    """Names of the modules that functions of a module import."""
    try:
        spec = find_spec(module)
    except ValueError:  # made by an extension, which imports as it is loaded
        return
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return
    visitor = _Lazy(spec.parent or "")
    visitor.visit(ast.parse(Path(spec.origin).read_bytes()))
    for name, attribute in visitor.found:
        yield name
        if attribute is None or name in EXEMPT:
            continue
        if is_module(f"{name}.{attribute}"):
            yield f"{name}.{attribute}"


def is_module(name: str) -> bool:
    """Return whether an attribute of a module is a module itself."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """Modules that a job holds."""
    with running_sandbox() as server:
        return set(server.probe("environment")["modules"])


def test_every_codec_is_loaded(loaded: set[str]) -> None:
    """A job holds all codecs of the standard library."""
    every = {each.name for each in pkgutil.iter_modules(encodings.__path__)}
    missing = {name for name in every if f"encodings.{name}" not in loaded}

    assert missing == OF_WINDOWS


def test_lazy_import_of_a_library_is_loaded_or_exempt(loaded: set[str]) -> None:
    """A job holds every module that one of its libraries imports in a function."""
    missing = {
        name: module
        for module in sorted(loaded)
        if module.partition(".")[0] in LIBRARIES
        for name in lazy_imports(module)
        if name not in loaded
    }

    assert missing.keys() == EXEMPT.keys(), missing


def test_what_is_loaded_is_installed_without_the_tests_packages() -> None:
    """An installation has the packages of requirements.lock alone."""
    lock = (Path(__file__).parents[3] / "requirements.lock").read_text()
    locked = {line.partition("==")[0] for line in lock.splitlines() if "==" in line}
    packages = packages_distributions()

    for name in (*LATE, *FACES, *WORKERS):
        found = packages.get(name.partition(".")[0], [])
        assert not found or {each.lower() for each in found} & locked, name
