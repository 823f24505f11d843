"""A random sample of mutants that stays the same where other code changes.

Statements are ranked by a hash of the seed, their file, scope and text: an edit
elsewhere neither renumbers nor replaces the ones chosen. Two trees with the same
statement have the same mutant of it, whatever else differs.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.mutation.changes import Change, Statement, statements

PACKAGES: Final = (
    "appliance/signing",
    "worker/signing",
    "worker/sandbox/verify",
    "appliance/identity",
)
"""What the signatures depend on: who signs, when, and what a signature proves."""
_NAME_LENGTH: Final = 10


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to one statement of one file.

    Args:
        name: hexadecimal; the same in every tree that has the statement.
        package: of PACKAGES.
        file: from the tree's folder on.
        source: of the file, without the change.
        statement: that is changed.
        change: to it.
    """

    name: str
    package: str
    file: str
    source: str
    statement: Statement
    change: Change

    @property
    def at(self) -> str:
        """File and line, as editors take it."""
        return f"{self.file}:{self.statement.line}"

    @property
    def text(self) -> str:
        """All of the file, with the change."""
        return self.change.apply(self.source)

    @property
    def before(self) -> str:
        """The text that is changed."""
        return self.source.encode()[self.change.start : self.change.end].decode()


def modules(tree: Path) -> dict[str, dict[str, str]]:
    """Sources of the packages, by package and by file from the tree's folder on."""
    return {
        package: {
            str(path.relative_to(tree)): path.read_text("utf-8")
            for path in sorted((tree / package).rglob("*.py"))
        }
        for package in PACKAGES
    }


def sample(
    sources: Mapping[str, Mapping[str, str]], seed: int, count: int
) -> list[Mutant]:
    """Choose mutants, of each package as many; the first ones have one more.

    Args:
        sources: texts by package and file.
        seed: the same one chooses the same mutants.
        count: of mutants; fewer where a package has too few statements.
    """
    share, rest = divmod(count, len(sources))
    chosen: list[Mutant] = []
    for place, (package, files) in enumerate(sources.items()):
        ranked = sorted(_mutants(package, files, seed), key=lambda each: each.name)
        chosen += ranked[: share + (place < rest)]
    return chosen


def _mutants(package: str, files: Mapping[str, str], seed: int) -> Iterable[Mutant]:
    """One mutant of each statement that can be changed."""
    for file, source in files.items():
        seen: dict[tuple[str, str], int] = {}
        for statement in statements(source):
            place = (statement.scope, statement.head)
            seen[place] = seen.get(place, 0) + 1
            if not statement.changes:
                continue
            key = f"{seed}\0{file}\0{statement.scope}\0{statement.head}\0{seen[place]}"
            change = _change(statement.changes, key)
            name = _hash(key)[:_NAME_LENGTH]
            yield Mutant(name, package, file, source, statement, change)


def _change(changes: Sequence[Change], key: str) -> Change:
    """First the kind, then one of that kind: constants are many, and prove little."""
    kinds = sorted({change.kind for change in changes})
    kind = min(kinds, key=lambda each: _hash(f"{key}\0{each}"))
    of_kind = [change for change in changes if change.kind == kind]
    return of_kind[int(_hash(f"{key}\0which"), 16) % len(of_kind)]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
