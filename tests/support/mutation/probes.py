"""Which statements ran, of every process that a test starts.

Before each statement of a function stands an assignment to one byte of a file that
all processes map into their memory. So a forked process is covered, and a sandbox job
too, which may make no system call; a tracer would have to be started in each of them.
What runs on import has no probe: one process imports for many tests.
"""

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.mutation.changes import is_docstring

HITS_FILE: Final = "appliance/statement_hits.py"
"""Where the tree gets the module that maps the file; every package may import it."""
_HITS_MODULE: Final = '''\
"""One byte for each statement that has a probe: 1 once it ran."""

import mmap
import os


def _open():
    try:
        descriptor = os.open({path!r}, os.O_RDWR)
    except OSError:
        # Out of this process's reach: it runs as it would, and is not recorded.
        return bytearray({size})
    try:
        return mmap.mmap(descriptor, {size})
    finally:
        os.close(descriptor)


HITS = _open()
'''
_NAME: Final = "_hits_of_statements"
_IMPORT: Final = f"from appliance.statement_hits import HITS as {_NAME}"


@dataclass(frozen=True, slots=True)
class Probes:
    """Modules with probes.

    Args:
        texts: by file.
        places: file and line of each probe; its place here is its byte.
    """

    texts: dict[str, str]
    places: list[tuple[str, int]]


def with_probes(sources: Mapping[str, str]) -> Probes:
    """Put a probe before each statement of each function.

    Args:
        sources: texts by file.
    """
    texts: dict[str, str] = {}
    places: list[tuple[str, int]] = []
    for file, source in sorted(sources.items()):
        tree = ast.parse(source)
        lines: list[int] = []
        _probe(tree, lines, len(places), in_function=False)
        places += [(file, line) for line in lines]
        tree.body.insert(_after_head(tree.body), *ast.parse(_IMPORT).body)
        texts[file] = ast.unparse(ast.fix_missing_locations(tree))
    return Probes(texts, places)


def hits_module(hits: Path, size: int) -> str:
    """The module that maps the file of hits.

    Args:
        hits: the file, as large as the count of probes.
        size: that count.
    """
    return _HITS_MODULE.format(path=str(hits), size=size)


def _probe(node: ast.AST, lines: list[int], first: int, *, in_function: bool) -> None:
    """Add probes to the statements inside a node, and their lines to the list."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        in_function = True
    elif isinstance(node, ast.ClassDef):
        in_function = False
    for field in ("body", "handlers", "cases", "orelse", "finalbody"):
        inner = getattr(node, field, None)
        if not isinstance(inner, list):
            continue
        probed: list[ast.AST] = []
        for child in inner:
            has_probe = isinstance(child, ast.stmt) and not is_docstring(child)
            if in_function and has_probe:
                probed += ast.parse(f"{_NAME}[{first + len(lines)}] = 1").body
                lines.append(child.lineno)
            probed.append(child)
            _probe(child, lines, first, in_function=in_function)
        inner[:] = probed


def _after_head(body: Iterable[ast.stmt]) -> int:
    """Where a module's own statements begin, after docstring and `__future__`."""
    place = 0
    for at, node in enumerate(body, 1):
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not is_future and not (at == 1 and is_docstring(node)):
            break
        place = at
    return place
