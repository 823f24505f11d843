"""The product as the vectors of columns, cursors and backups see it.

As `tests.vectors.adapters`, for what stands in many places.
"""

from collections.abc import Mapping
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

from appliance.admission.work_owner import WorkOwner
from appliance.database.types import Instant
from appliance.domain.ids import TaskId
from appliance.domain.keys.generation import Generation
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.pki.timestamps import TimestampQuestion
from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.domain.vocab import TaskKind
from appliance.keys.credential_store import join, split
from appliance.keys.hsm_task_store import _share
from appliance.operations.backup import fingerprints, names
from appliance.operations.backup.archive import Tally
from appliance.pki.tsa.authority import TimestampWork, _given
from appliance.record import pagination
from tests.vectors.adapters import at, raw, read_json, written_json
from tests.vectors.kept import Given

# -- what stands in columns ----------------------------------------------------


def column_values(given: Given) -> dict[str, Any]:
    """Values that columns of any table have a form for."""
    sqlite = cast("Any", SimpleNamespace(name="sqlite"))
    instant = Instant().process_bind_param(at(given["instant"]), sqlite)
    return {
        "json": written_json(given["json"]),
        "instant": str(instant),
        "packed": join(tuple(raw(each) for each in given["parts"])).hex(),
        "share": _share(WorkOwner(given["share"])),
        "generation": str(Generation(given["number"], given["mark"])),
    }


def column_values_read(_given: Given, written: Mapping[str, Any]) -> dict[str, Any]:
    """What is read of them."""
    sqlite = cast("Any", SimpleNamespace(name="sqlite"))
    stood = datetime.fromisoformat(written["instant"])
    instant = Instant().process_result_value(stood, sqlite)
    assert instant is not None
    return {
        "json": read_json(written["json"]),
        "instant": instant.isoformat(),
        "parts": [part.hex() for part in split(raw(written["packed"]))],
        "generation": list(Generation.parse(written["generation"])),
    }


def console_cursor(given: Given) -> dict[str, str]:
    """Where the next page of a list of the console begins."""
    place_of = SimpleNamespace(at=at(given["at"]), writer=given["writer"], n=given["n"])
    return {
        "instant": pagination.instant(at(given["at"]), given["id"]),
        "place": pagination.place(cast("Any", place_of)),
    }


def console_cursor_read(_given: Given, written: Mapping[str, str]) -> dict[str, Any]:
    """What is read of them."""
    instant = pagination.read_instant(written["instant"])
    place_of = pagination.read_place(written["place"])
    assert instant is not None
    assert place_of is not None
    return {
        "instant": [instant[0].isoformat(), instant[1]],
        "place": [place_of.at.isoformat(), place_of.writer, place_of.n],
    }


def timestamp_task(given: Given) -> str:
    """The input of a `timestamp` task, as it stands in its column."""
    question = TimestampQuestion(
        raw(given["imprint"]),
        DigestAlgorithm(given["digest"]),
        given["nonce"],
        certificates=given["certificates"],
        null_parameters=given["null"],
    )
    told = _given(question, at(given["until"]))
    return str(written_json(told))


def timestamp_question(given: Given, written: str) -> dict[str, Any]:
    """What a worker reads of it."""
    told = cast("Any", read_json(written))
    clock = cast("Any", SimpleNamespace(now=lambda: at(given["until"])))
    work = TimestampWork(cast("Any", None), clock, "test")
    claim = TaskClaim(TaskId("t"), TaskKind.TIMESTAMP, told, 1)
    question = work.question(claim)
    return {
        "imprint": question.imprint.hex(),
        "digest": question.digest.value,
        "nonce": question.nonce,
        "certificates": question.certificates,
        "null": question.null_parameters,
    }


# -- backups -------------------------------------------------------------------


def backup_names(given: Given) -> dict[str, Any]:
    """What backups are called, and what they say of themselves."""
    mark = names.installation_id(given["mark"])
    made = at(given["at"])
    tally = Tally()
    for name, size in given["members"]:
        tally.count(name, size)
    return {
        "installation": mark,
        "record": names.BackupName(names.RECORD, mark, made).file,
        "secrets": names.BackupName(names.SECRETS, mark, made).file,
        "unmarked": names.BackupName(names.RECORD, None, made).file,
        "fingerprint": fingerprints._fingerprint(raw(given["key"])),
        "contents": tally.told(),
    }


def backup_names_read(
    _given: Given, written: Mapping[str, Any]
) -> list[list[str | None]]:
    """What is read of the names."""
    found = [
        names.BackupName.of(written[each]) for each in ("record", "secrets", "unmarked")
    ]
    return [[one.kind, one.installation, one.made.isoformat()] for one in found if one]
