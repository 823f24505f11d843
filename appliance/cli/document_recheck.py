"""`rubrica documents recheck`: verify the signed documents that are kept, again.

rubrica documents recheck
rubrica documents recheck --since 2026-11-01 --json
rubrica documents recheck --request 12
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from appliance.cli.arguments import number
from appliance.cli.progress_bar import ProgressBar
from appliance.cli.terminal import note, run_with, say
from appliance.cli.verify import QUESTIONS, report_on, shown
from appliance.domain.clock import SystemClock
from appliance.domain.ids import RequestId
from appliance.domain.requests.kept_documents import Selection
from appliance.domain.vocab import RequestState
from appliance.settings import Settings, SettingsError, load_settings

if TYPE_CHECKING:
    from appliance.bootstrap.core import Core
    from appliance.signing.document_recheck import Rechecked

_BROKEN: Final = 1
_WRONG: Final = 2
_UNCHECKED: Final = 3
_WORDS: Final = {
    **QUESTIONS,
    "ending": "the file ends with its last revision",
    "presence": "the signatures that were made here are in the file",
}
_OUTCOMES: Final = {
    "broken": "a signature made here is NO LONGER WHOLE",
    "unchecked": "could not be checked",
    "missing": "is MISSING in the store",
    "altered": "is ALTERED in the store: its SHA-256 is not that of the record",
    "shredded": "cannot be opened: the key of its integrator's documents was destroyed",
}


def register(parts: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `recheck`.

    Args:
        parts: of `rubrica documents`.
    """
    recheck = parts.add_parser(
        "recheck",
        help="verify the signed documents that are kept again, and list those of "
        "which a signature made here is no longer whole",
        description="Verify the newest version of each signed document, newest request "
        "first. Listed are documents of which a signature made here is no longer "
        "whole, and apart those that could not be checked, are missing or altered in "
        "the store. Trust, revocation and time are not looked at. Nothing is written.",
        epilog="Exit status: 0, all are whole; 1, some are not; 3, none is known not "
        "to be, and some could not be checked; 2, the command is wrong, or the request "
        "that it names has no signed document; 75, the database is away; 78, the "
        "settings are wrong.",
    )
    recheck.add_argument(
        "--since",
        type=_day,
        metavar="DATE",
        help="only those made or raised since that day, UTC (2026-11-30)",
    )
    recheck.add_argument("--request", type=number, help="only that request's")
    recheck.add_argument(
        "--before",
        type=number,
        metavar="REQUEST",
        help="only requests below that number: go on where a run ended",
    )
    recheck.add_argument(
        "--json",
        action="store_true",
        help="one JSON object a line for each document that is listed, and a last one "
        "with the numbers",
    )
    recheck.set_defaults(run=_recheck)


def _day(text: str) -> datetime:
    try:
        day = date.fromisoformat(text)
    except ValueError as exc:
        msg = f"{text[:40]!r} is no day such as 2026-11-30"
        raise argparse.ArgumentTypeError(msg) from exc
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _recheck(args: argparse.Namespace) -> int:
    from appliance.cli.own_sandbox import sandbox_at_hand  # noqa: PLC0415 (heavy)

    given = load_settings(args.settings)
    if not given.root_file.exists():
        msg = f"{given.root_file}: is not there; run `rubrica hsm init`"
        raise SettingsError(msg)
    selection = Selection(
        request=None if args.request is None else RequestId(args.request),
        since=args.since,
        before=None if args.before is None else RequestId(args.before),
    )
    with sandbox_at_hand(given) as settings:
        return run_with(partial(_run, selection=selection, as_json=args.json), settings)


async def _run(settings: Settings, selection: Selection, *, as_json: bool) -> int:
    from appliance.bootstrap.core import (  # noqa: PLC0415 (heavy)
        document_sealer,
        open_core,
    )
    from appliance.signing.document_recheck import (  # noqa: PLC0415 (heavy)
        DocumentRecheck,
        OutageError,
        Outcome,
    )

    counts: Counter[str] = Counter()
    at: RequestId | None = None
    sealer = document_sealer(settings)
    async with open_core(settings, SystemClock(), "operator", sealer) as core:
        recheck = DocumentRecheck(core.store, core.documents, partial(report_on, core))
        total = await recheck.count(selection)
        if selection.request is not None and not total:
            note(await _why_none(core, selection.request))
            return _WRONG
        bar = ProgressBar("verifying documents", total)
        try:
            async for each in recheck.run(selection):
                at = each.document.request
                counts[each.outcome.value] += 1
                if each.outcome is not Outcome.WHOLE:
                    _tell(each, as_json=as_json)
                bar.advance(1)
        except OutageError as outage:
            # The documents of the outage are listed, and looked at again.
            if (left := total - counts.total()) > 0:
                counts["left"] = left
            _tell_rest(RequestId(outage.at + 1))
        except BaseException:
            if at is not None:
                _tell_rest(at)
            raise
        finally:
            bar.finish()
    _tell_counts(counts, as_json=as_json)
    if counts[Outcome.BROKEN.value]:
        return _BROKEN
    whole = counts[Outcome.WHOLE.value] + counts[Outcome.SHREDDED.value]
    return 0 if whole == counts.total() else _UNCHECKED


async def _why_none(core: "Core", request: RequestId) -> str:
    """Tell why there is nothing of a request to verify, and what to do."""
    from appliance.requests.request_store import RequestStore  # noqa: PLC0415 (heavy)

    async with core.store.read() as transaction:
        view = await RequestStore(transaction).get(request)
    if view is None:
        return (
            f"there is no request {request}, so nothing was verified; the console "
            "lists the requests with their numbers"
        )
    state = view.state.value
    if view.state is RequestState.SIGNED:
        return (
            f"request {request} has no signed document of the days that were asked "
            "for: nothing was verified"
        )
    return (
        f"request {request} is {state}: it has no signed document, so nothing was "
        "verified"
    )


def _tell_rest(before: RequestId) -> None:
    note(f"not finished; to go on, run it again with --before {before}")


def _tell(each: "Rechecked", *, as_json: bool) -> None:
    """List a document."""
    if as_json:
        say(json.dumps(_members(each), ensure_ascii=False))
        return
    for line in _lines(each):
        say(line)


def _members(each: "Rechecked") -> dict[str, object]:
    kept = each.document
    return {
        "request": kept.request,
        "process": kept.process,
        "integrator": kept.integrator,
        "version": kept.version,
        "sha256": kept.sha256,
        "outcome": each.outcome.value,
        "why": each.why,
        "signatures": [
            {
                "field": fault.signature,
                "signer": fault.signer,
                "question": fault.question,
                "code": fault.code.value,
                "reason": fault.reason,
            }
            for fault in each.faults
        ],
    }


def _lines(each: "Rechecked") -> Iterator[str]:
    kept = each.document
    why = f" ({each.why})" if each.why else ""
    yield f"request {kept.request}: {_OUTCOMES[each.outcome.value]}{why}"
    yield f"  process {kept.process}, version {kept.version}, SHA-256 {kept.sha256}"
    mark = "NO " if each.outcome.value == "broken" else "?  "
    for fault in each.faults:
        field = shown(fault.signature)
        signer = f" ({shown(fault.signer)})" if fault.signer else ""
        of = f"{field}{signer}: " if field else ""
        yield f"  {mark} {of}{_WORDS[fault.question]}"
        if fault.reason:
            yield f"       {shown(fault.reason)}"


def _tell_counts(counts: Counter[str], *, as_json: bool) -> None:
    if as_json:
        say(json.dumps({"counts": dict(sorted(counts.items()))}))
        return
    parts = [f"{counts['whole']} whole"]
    for name, words in (
        ("broken", "no longer whole"),
        ("unchecked", "could not be checked"),
        ("missing", "missing"),
        ("altered", "altered in the store"),
        ("shredded", "of destroyed keys"),
        ("left", "not looked at"),
    ):
        if counts[name]:
            parts.append(f"{counts[name]} {words}")
    say(f"{counts.total()} documents: {', '.join(parts)}")
