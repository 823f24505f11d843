"""Matrix of pages, configurations and ways to ask for a page.

    matrix = PageMatrix("console prod-mail")
    with matrix.watching():
        answer = await console.get("/admin/people/new")
        matrix.cell("people.new", Way.GET, answer.status)
    print(matrix.table())

A cell is one page in one configuration, asked for in one way. The matrix also keeps
which templates were rendered, whether as a page or as a part of one.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final

from jinja2 import Environment, Template
from jinja2.nodes import Const, Extends

from tests.support.faces.rendered_templates import observed_parts

_TABLE: Final = "{:44} {}"


def template_files(folder: Path) -> set[str]:
    """Return the names of all templates below a folder, as pages refer to them."""
    files = (each for each in folder.rglob("*") if each.is_file())
    return {str(each.relative_to(folder)) for each in files}


class Way(StrEnum):
    """Way to ask for a page."""

    GET = "get"
    PART = "part"
    """GET by a script, which replaces a part of the page."""
    FAULTS = "faults"
    """POST with faults: the page comes back, or an error page."""
    STALE = "stale"
    """POST of a page that was opened before a change by somebody else."""
    RIGHT = "right"
    """POST that is carried out."""


class PageMatrix:
    """Cells of one configuration.

    Args:
        configuration: its name.
    """

    def __init__(self, configuration: str) -> None:
        self.templates: set[str] = set()
        """Names of templates that were rendered."""
        self._configuration = configuration
        self._cells: dict[tuple[str, Way], set[int]] = defaultdict(set)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keep the names of the templates that are rendered meanwhile."""

        def keep(template: Template) -> None:
            self._keep(template.environment, str(template.name))

        with observed_parts(keep):
            yield

    def _keep(self, environment: Environment, name: str) -> None:
        """Keep the name of a template, and of those that it extends."""
        if name in self.templates:
            return
        self.templates.add(name)
        assert environment.loader is not None
        source, _, _ = environment.loader.get_source(environment, name)
        for parent in environment.parse(source).find_all(Extends):
            assert isinstance(parent.template, Const)
            self._keep(environment, str(parent.template.value))

    def cell(self, page: str, way: Way, status: int) -> None:
        """Keep an answer.

        Args:
            page: endpoint, or another name of the page.
            way: how it was asked for.
            status: of the answer.

        Raises:
            AssertionError: the server failed.
        """
        assert status != 500, (self._configuration, page, way, status)
        self._cells[page, way].add(status)

    def pages(self, way: Way, *statuses: int) -> set[str]:
        """Return the pages that were asked for in a way and had one of the statuses."""
        return {
            page
            for (page, asked), had in self._cells.items()
            if asked is way and had & set(statuses)
        }

    def table(self) -> str:
        """Return a line for each page, and the number of cells in the first line."""
        ways: dict[str, list[str]] = defaultdict(list)
        for (page, way), statuses in sorted(self._cells.items()):
            ways[page].append(f"{way}:{','.join(map(str, sorted(statuses)))}")
        lines = [_TABLE.format(page, " ".join(had)) for page, had in ways.items()]
        return "\n".join([f"{self._configuration}: {len(self._cells)} cells", *lines])
