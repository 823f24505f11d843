"""Messages that carry a verification report from the sandbox."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from appliance.domain.documents.verification import (
    ALTERNATE_CHARS,
    Answer,
    Check,
    CheckCode,
    FilledField,
    SignatureReport,
    VerificationReport,
)
from appliance.domain.pki.timestamps import RevokedTsa
from appliance.domain.sandbox.messages import MessageInvalidError
from appliance.domain.text.untrusted_json import boolean, docmdp, integer, text


def report_to_json(report: VerificationReport) -> dict[str, Any]:
    """Write a verification report; an alternate name only where there is one."""
    message = asdict(report)
    for signature in message["signatures"]:
        if not signature["alternate"]:
            del signature["alternate"]
    return message


def report_from_json(message: Mapping[str, Any]) -> VerificationReport:
    """Read a verification report, distrusting who wrote it.

    Raises:
        MessageInvalidError: a field is missing or of another type.
    """
    try:
        return VerificationReport(
            signatures=tuple(_signature(entry) for entry in message["signatures"]),
            ending=_check(message["ending"]),
            text_covered=Answer(message["text_covered"]),
            covered_pages=tuple(map(integer, message["covered_pages"])),
            pages_compared=integer(message["pages_compared"]),
            pages_changed=integer(message["pages_changed"]),
            unproven=tuple(text(each) for each in message["unproven"]),
        )
    except (KeyError, TypeError, ValueError) as exc:
        raise MessageInvalidError from exc


def _signature(entry: Mapping[str, Any]) -> SignatureReport:
    """Read one signature."""
    signed_at, timestamp = entry["signed_at"], entry["timestamp"]
    return SignatureReport(
        field=text(entry["field"]),
        integrity=_check(entry["integrity"]),
        identity=_check(entry["identity"]),
        trust=_check(entry["trust"]),
        revocation=_check(entry["revocation"]),
        time=_check(entry["time"]),
        coverage=_check(entry["coverage"]),
        changes=_check(entry["changes"]),
        signer=text(entry["signer"]),
        signer_serial=text(entry["signer_serial"]),
        signed_at=None if signed_at is None else text(signed_at),
        docmdp=docmdp(entry["docmdp"]),
        level=text(entry["level"]),
        timestamp=None if timestamp is None else text(timestamp),
        tsa=text(entry["tsa"]),
        void=text(entry["void"]),
        follows=integer(entry["follows"]),
        filled=tuple(_filled(each) for each in entry["filled"]),
        certificates=tuple(text(each) for each in entry["certificates"]),
        serial=text(entry["serial"]),
        is_timestamp=boolean(entry["is_timestamp"]),
        # A sandbox of the version before says nothing of it.
        alternate=text(entry.get("alternate", ""))[-ALTERNATE_CHARS:],
    )


def _check(entry: Mapping[str, Any]) -> Check:
    return Check(
        Answer(entry["answer"]), CheckCode(entry["code"]), text(entry["reason"])
    )


def _filled(entry: Mapping[str, Any]) -> FilledField:
    return FilledField(
        name=text(entry["name"]),
        before=text(entry["before"]),
        after=text(entry["after"]),
        shown=text(entry["shown"]),
    )


def revoked_to_json(revoked: Sequence[RevokedTsa]) -> list[list[str]]:
    """Write the known revocations of TSAs."""
    return [[each.certificate, each.at.isoformat(), each.reason] for each in revoked]


def revoked_from_json(message: object) -> tuple[RevokedTsa, ...]:
    """Read the known revocations of TSAs.

    Raises:
        MessageInvalidError: it is of another shape.
    """
    if not isinstance(message, list):
        raise MessageInvalidError
    try:
        return tuple(
            RevokedTsa(text(sha256), datetime.fromisoformat(at), text(reason))
            for sha256, at, reason in message
        )
    except (TypeError, ValueError) as exc:
        raise MessageInvalidError from exc
