"""An installation with any number of credentials, made by an earlier tree.

    make(folder, earlier, 10_000)
    site, people = copied(folder, earlier, place, database)

Some people enrol as any do; a few of them have their key on the token. All others enrol
with a signing worker that leaves out the sample, and without a login password
(`tree_script`), at some ten a second.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.credential_place import cuils
from tests.support.hosts.earlier_tree import Tree, TreeInstallation
from tests.support.hosts.tree_roles import API, SANDBOX, SIGNING, TreeRoles, run_script
from tests.support.installation.settings import merged, toml
from tests.support.processes.scratch import short_folder
from tests.support.processes.setup_cache import copy_installation

_PEOPLE: Final = "people.json"
_PARTS: Final = ("documents", "hsm", "pki", "rubrica.db", "secrets", "settings.toml")
_RESIDENT: Final = 4
_SLOWLY: Final = 40
"""One in so many enrols as anybody does."""
_AT_ONCE: Final = 2_500


def make(folder: Path, tree: Tree, count: int) -> None:
    """Make an installation and leave it stopped.

    Args:
        folder: an existing, empty one, where it is put.
        tree: whose code makes it.
        count: of its credentials.
    """
    with short_folder() as place:
        site = TreeInstallation(place)
        site.bring_up(tree)
        # Nobody is to be told by mail, ten thousand times.
        quiet = {name: table for name, table in site.toml().items() if name != "mail"}
        site.settings.write_text(toml(quiet), "utf-8")
        people: list[Any] = []
        with TreeRoles.of(site) as roles:
            host = roles.host()
            host.start(tree, SANDBOX, API)
            for some, setting, is_quick in _parts(count):
                host.configure(hsm=setting)
                for role in SIGNING:
                    if is_quick:
                        host.start_quick_worker(tree, role)
                    else:
                        host.start(tree, role)
                for start in range(0, len(some), _AT_ONCE):
                    orders = some[start : start + _AT_ONCE]
                    people += host.run(tree, "enrol", orders)
                host.stop(*SIGNING)
            host.stop(API, SANDBOX)
        (place / _PEOPLE).write_text(json.dumps(people), "utf-8")
        copy_installation(place, folder, (*_PARTS, _PEOPLE))


def _parts(count: int) -> Iterator[tuple[list[Any], dict[str, str], bool]]:
    """Yield people, `[hsm]` of their enrolment, and whether it is quick."""
    orders = [
        {"cuil": cuil, "name": f"Persona {number}", "password": f"firma de {number}"}
        for number, cuil in enumerate(cuils(count))
    ]
    slowly = _RESIDENT + count // _SLOWLY
    kinds: tuple[tuple[int, int, dict[str, str]], ...] = (
        (0, _RESIDENT, {"key_mode": "resident"}),
        (_RESIDENT, slowly, {"key_mode": "wrapped"}),
        (slowly, count, {"key_mode": "wrapped", "key_algorithm": "ec-p256"}),
    )
    for first, last, setting in kinds:
        is_quick = first == slowly
        some = [{**order, "quick": is_quick} for order in orders[first:last]]
        yield some, setting, is_quick


@dataclass(frozen=True, slots=True)
class Enrolled:
    """Somebody with a certificate, and what only they would know."""

    id: str
    cuil: str
    name: str
    credential: str
    signing_password: str
    is_resident: bool


def copied(
    source: Path, tree: Tree, place: Path, database: str | None
) -> tuple[TreeInstallation, list[Enrolled]]:
    """Copy an installation that `make` has left.

    Args:
        source: where it is.
        tree: that made it.
        place: a short, private, empty folder.
        database: URL of an empty database; None: SQLite, as it was made.
    """
    first = _PARTS if database is None else ("hsm", "pki", "secrets", "settings.toml")
    copy_installation(source, place, first)
    site = TreeInstallation(place)
    if database is not None:
        given = merged(site.toml(), {"database": {"url": database}})
        site.settings.write_text(toml(given), "utf-8")
        site.run(tree, "migrate")
        # It has marked a folder as another installation's than these rows are of.
        shutil.rmtree(place / "documents")
        copy_installation(source, place, ("documents",))
        run_script(tree, site.settings, "copy", str(source / "settings.toml"))
    people = json.loads((source / _PEOPLE).read_text("utf-8"))
    return site, [
        Enrolled(
            id=each["id"],
            cuil=each["cuil"],
            name=each["name"],
            credential=each["credential"],
            signing_password=each["password"],
            is_resident=number < _RESIDENT,
        )
        for number, each in enumerate(people)
    ]
