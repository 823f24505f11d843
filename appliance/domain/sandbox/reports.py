"""What the sandbox says of the signatures of a document."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from appliance.domain.documents import SignatureReport, VerificationReport
from appliance.domain.sandbox.messages import MessageInvalidError
from appliance.domain.text.untrusted_json import boolean, docmdp, integer, text
from appliance.domain.timestamps import RevokedTsa


def report_to_json(report: VerificationReport) -> dict[str, Any]:
    """Write a verification report."""
    return asdict(report)


def report_from_json(message: Mapping[str, Any]) -> VerificationReport:
    """Read a verification report, distrusting who wrote it.

    Raises:
        MessageInvalidError: a field is missing or of another type.
    """
    try:
        return VerificationReport(
            signatures=tuple(_signature(entry) for entry in message["signatures"]),
            ends_at_eof=boolean(message["ends_at_eof"]),
            text_covered=boolean(message["text_covered"]),
        )
    except (KeyError, TypeError, ValueError) as exc:
        raise MessageInvalidError from exc


def _signature(entry: Mapping[str, Any]) -> SignatureReport:
    """Read one signature."""
    signed_at, timestamp = entry["signed_at"], entry["timestamp"]
    return SignatureReport(
        field=text(entry["field"]),
        signer=text(entry["signer"]),
        signer_serial=text(entry["signer_serial"]),
        signed_at=None if signed_at is None else text(signed_at),
        intact=boolean(entry["intact"]),
        trusted=boolean(entry["trusted"]),
        covers_revision=boolean(entry["covers_revision"]),
        only_ltv_follows=boolean(entry["only_ltv_follows"]),
        docmdp=docmdp(entry["docmdp"]),
        reason=text(entry["reason"]),
        level=text(entry["level"]),
        timestamp=None if timestamp is None else text(timestamp),
        tsa=text(entry["tsa"]),
        void=text(entry["void"]),
        follows=integer(entry["follows"]),
    )


def revoked_to_json(revoked: Sequence[RevokedTsa]) -> list[list[str]]:
    """Write what is known of revoked TSAs."""
    return [[each.certificate, each.at.isoformat(), each.reason] for each in revoked]


def revoked_from_json(message: object) -> tuple[RevokedTsa, ...]:
    """Read what is known of revoked TSAs.

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
