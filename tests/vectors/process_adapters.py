"""The product as the vectors of what processes say to each other see it.

As `tests.vectors.adapters`: the sandbox's messages, and files of a host's processes.
"""

import tempfile
from pathlib import Path
from typing import Any, Final

from appliance.domain.appearance.details import Logo, LogoPicture, StampDetails
from appliance.domain.appearance.stamp import place, stamp_lines
from appliance.domain.documents.inspected import Damage, PageBox
from appliance.domain.documents.verification import (
    Answer,
    Check,
    CheckCode,
    FilledField,
    SignatureReport,
    VerificationReport,
)
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.pki.timestamps import RevokedTsa
from appliance.domain.sandbox import (
    JobCaller,
    JobKind,
    caller_of,
    damage_from_json,
    damage_to_json,
    decode,
    encode,
    inspection_from_json,
    inspection_to_json,
    layout_from_json,
    layout_to_json,
    picture_from_json,
    picture_to_json,
    refusal_from_json,
    refusal_to_json,
    report_from_json,
    report_to_json,
    revoked_from_json,
    revoked_to_json,
    search_from_json,
    search_to_json,
    socket_name,
)
from appliance.domain.signing_command import SignParameters
from appliance.metrics import metrics_file
from appliance.runtime.hang_watchdog import CallWatch, watch_path
from appliance.runtime.liveness_file import pulse_path
from tests.vectors.adapters import at, inspection_of, raw
from tests.vectors.kept import Given


def _refusal(value: Any) -> DocumentRefusedError:
    code = ErrorCode(value["code"])
    return DocumentRefusedError(code, value["reason"], params=value["params"])


def _report(value: Any) -> VerificationReport:
    filled = (FilledField(*value["filled"]),)
    reports = tuple(_signature(one, filled) for one in value["signatures"])
    compared, changed = value["pages"]
    return VerificationReport(
        reports,
        _check(value["ending"]),
        text_covered=Answer(value["covered"]),
        pages_compared=compared,
        pages_changed=changed,
        unproven=tuple(value["unproven"]),
    )


def _signature(value: Any, filled: tuple[FilledField, ...]) -> SignatureReport:
    answers: dict[str, Any] = {
        name: _check(one) for name, one in value["answers"].items()
    }
    rest = {name: one for name, one in value.items() if name != "answers"}
    known = tuple(rest.pop("certificates"))
    return SignatureReport(**answers, **rest, filled=filled, certificates=known)


def _check(value: Any) -> Check:
    answer, code, reason = value
    return Check(Answer(answer), CheckCode(code), reason)


def _layout(value: Any) -> Any:
    details = StampDetails.from_json(value["details"])
    lines = stamp_lines(value["name"], value["cuil"], at(value["at"]), value["locale"])
    params = SignParameters.from_wire(value["parameters"])
    pages = [PageBox(*box) for box in value["pages"]]
    return place(params, lines, pages, details=details)


_MESSAGES: Final[dict[str, tuple[Any, Any, Any]]] = {
    "inspection": (inspection_of, inspection_to_json, inspection_from_json),
    "damage": (
        lambda value: [Damage(each) for each in value],
        damage_to_json,
        damage_from_json,
    ),
    "refusal": (_refusal, refusal_to_json, refusal_from_json),
    "report": (_report, report_to_json, report_from_json),
    "revoked": (
        lambda value: [RevokedTsa(one[0], at(one[1]), one[2]) for one in value],
        lambda revoked: {"revoked": revoked_to_json(revoked)},
        lambda told: revoked_from_json(told["revoked"]),
    ),
    "layout": (_layout, layout_to_json, layout_from_json),
    "search": (search_from_json, search_to_json, search_from_json),
    "picture": (
        lambda value: LogoPicture(Logo(*value["logo"]), raw(value["deflated"])),
        picture_to_json,
        picture_from_json,
    ),
}
"""What a message is of, how it is written and read."""


def sandbox_message(given: Given) -> str:
    """A message of the sandbox's socket: its length and JSON."""
    of, written, _ = _MESSAGES[given["kind"]]
    return encode(written(of(given["value"]))).hex()


def sandbox_read(given: Given, message: str) -> Any:
    """What is understood of a message, said again."""
    _, written, read = _MESSAGES[given["kind"]]
    return written(read(decode(raw(message)[4:])))


def sandbox_caller(given: Given) -> str:
    """The name of a caller's socket."""
    return socket_name(JobCaller(JobKind(given["kind"]), given["share"])).hex()


def sandbox_caller_read(_given: Given, written: str) -> list[str]:
    """Whose a job is."""
    caller = caller_of(raw(written))
    return [caller.kind.value, caller.share]


def files_of_processes(given: Given) -> dict[str, Any]:
    """Files by which processes of a host know of each other."""
    run_dir = Path("run")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "words")
        watch = CallWatch(path, lambda: given["ns"])
        watch.begin()
        with watch.calling(given["token"]):
            watch.note_hang()
            words = path.read_bytes()
    return {
        "pulse": str(pulse_path(run_dir, given["role"], given["number"])),
        "calls": str(watch_path(run_dir, given["number"])),
        "words": words.hex(),
        "metrics": sorted(metrics_of(given["role"])),
    }


def metrics_of(role: str) -> dict[str, Any]:
    """What a process's file of figures says, but for the figures."""
    with tempfile.TemporaryDirectory() as folder:
        file = metrics_file.MetricsFile(Path(folder), role, 1)
        file.write()
        file.close()
        (path,) = [path for path in Path(folder).rglob("*") if path.is_file()]
        text = path.read_text("utf-8")
        return {str(path.relative_to(folder)): text[: text.index("[")]}
