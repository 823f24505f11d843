"""`rubrica person list`: pages, a filter, and what programs read."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.processes.command_folder import CommandFolder, make_command_folder

_COPIES = """\
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 60)
INSERT INTO person SELECT TAKEN FROM person, c
"""


def test_people_are_listed_by_page_and_state(tmp_path: Path) -> None:
    """Newest first; JSON has the same rows and the next page's cursor."""
    make_command_folder(tmp_path)
    place = CommandFolder(tmp_path)
    place.run("migrate")
    for cuil, name in (("20-05536168-2", "Ana Núñez"), ("20-12345678-6", "Beto Paz")):
        named = ("--name", name, "--email", f"{name[:3].lower()}@demo.example")
        place.run("person", "invite", "--cuil", cuil, *named)
    with closing(sqlite3.connect(tmp_path / "rubrica.db")) as database, database:
        database.execute("UPDATE person SET state = 'active' WHERE name = 'Ana Núñez'")

    head, *lines = place.run("person", "list").splitlines()
    active = json.loads(place.run("person", "list", "--state", "active", "--json"))

    assert head.split()[:3] == ["cuil", "name", "state"]
    assert [line.split()[:2] for line in lines] == [
        ["20-12345678-6", "Beto"],
        ["20-05536168-2", "Ana"],
    ]
    (ana,) = active["people"]
    assert (ana["name"], ana["state"], ana["notAfter"]) == ("Ana Núñez", "active", None)
    assert active["next"] is None
    assert place.run("person", "list", "--after", "nada", status=1) == ""


def test_pages_follow_each_other(tmp_path: Path) -> None:
    """The cursor that a page ends on leads to the one after it."""
    make_command_folder(tmp_path)
    place = CommandFolder(tmp_path)
    place.run("migrate")
    named = ("--name", "Ana Núñez", "--email", "ana@demo.example")
    place.run("person", "invite", "--cuil", "20-05536168-2", *named)
    with closing(sqlite3.connect(tmp_path / "rubrica.db")) as database, database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(person)")]
        changed = {
            "id": "id || '-' || n",
            "cuil": "printf('%011d', n)",
            "email_index": "email_index || '-' || n",
        }
        taken = ", ".join(changed.get(column, column) for column in columns)
        database.execute(_COPIES.replace("TAKEN", taken))

    first = json.loads(place.run("person", "list", "--json"))
    second = json.loads(place.run("person", "list", "--json", "--after", first["next"]))

    assert (len(first["people"]), len(second["people"])) == (50, 11)
    every = {row["cuil"] for row in (*first["people"], *second["people"])}
    assert len(every) == 61
    assert f"more: rubrica person list --after {first['next']}" in place.run(
        "person", "list"
    )


def test_database_that_is_away_is_told_from_what_is_wrong(tmp_path: Path) -> None:
    """75: it passes by itself; who starts this again need not be told anything."""
    make_command_folder(tmp_path, f"postgresql://rubrica@/x?host={tmp_path}")

    said = CommandFolder(tmp_path).run("migrate", status=75)

    assert said == ""
