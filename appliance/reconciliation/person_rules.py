"""Rules on one person: each key and certificate was asked for by who may ask."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from appliance.domain.audit.reconciliation import (
    CertificateRow,
    Check,
    CredentialRow,
    Finding,
    PersonHistory,
)
from appliance.domain.vocab import EventKind, TaskKind
from appliance.reconciliation.writers import SKEW, wrong_writer

EFFECTS: Final = (
    EventKind.CREDENTIAL_ISSUED,
    EventKind.CERTIFICATE_RENEWED,
    EventKind.CERTIFICATE_IMPORTED,
    EventKind.SAMPLE_INTENDED,
)
"""What the rules ask reasons for; read before `CAUSES`, so that none is missed."""
CAUSES: Final = (
    EventKind.SIGN_PASSWORD_REPLACED,
    EventKind.PERSON_CREATED,
    EventKind.PERSON_ENROLLED,
    EventKind.PERSON_REISSUED,
    EventKind.PERSON_INVITED,
    EventKind.REVOCATION_ASKED,
    EventKind.REVOCATION_FOUND,
)
"""What the rules accept as a reason."""
_ASKING: Final = {
    EventKind.CREDENTIAL_ISSUED.value: TaskKind.ISSUE.value,
    EventKind.CERTIFICATE_RENEWED.value: TaskKind.RENEW.value,
}
_ASKERS: Final = frozenset({"api", "admin", "chores"})


def judge_person(
    history: PersonHistory, revoked: Mapping[str, datetime]
) -> Iterator[Finding]:
    """Yield what no honest history of a person's keys has.

    Args:
        history: of the person.
        revoked: times of revocations, by credential and by serial number.
    """
    for event in history.events:
        if (finding := wrong_writer(event)) is not None:
            yield finding
    yield from _asked(history)
    yield from _invited(history)
    yield from _renewed_in_force(history, revoked)
    yield from _rows(history)


def _asked(history: PersonHistory) -> Iterator[Finding]:
    """Yield certificates without a task that somebody asked for."""
    kinds = EventKind.CREDENTIAL_ISSUED, EventKind.CERTIFICATE_RENEWED
    for event in history.of(*kinds):
        task = history.tasks.get(event.text("task"))
        word = "issued" if event.kind == kinds[0].value else "renewed"
        reason = ""
        if task is None:
            reason = f"{word}, and nobody recorded that it was asked for"
        elif task.text("kind") != _ASKING[event.kind] or (
            word == "renewed" and task.text("credential") != event.text("credential")
        ):
            reason = f"{word} by a task that was asked for something else"
        elif not task.roles <= _ASKERS:
            reason = f"{word} by a task that {task.role} asked for"
        if reason:
            yield event.finding(Check.CERTIFIED_UNASKED, reason)


def _invited(history: PersonHistory) -> Iterator[Finding]:
    """Yield enrolments that nobody invited to, and keys that follow from none."""
    yield from _enrolled(history)
    begun = history.of(EventKind.PERSON_ENROLLED, EventKind.PERSON_CREATED)
    named = {each.text("task") for each in begun}
    replaced = [each.at for each in history.of(EventKind.SIGN_PASSWORD_REPLACED)]
    issued = history.of(EventKind.CREDENTIAL_ISSUED)
    for place, event in enumerate(issued):
        task = history.tasks.get(event.text("task"))
        # Without a task there is a finding already.
        if task is None or event.text("task") in named:
            continue
        if any(abs(at - task.at) <= SKEW for at in replaced):
            continue
        open_before = [
            each.text("credential")
            for each in issued[:place]
            if not _ended(history, each.text("credential"), task.at)
        ]
        if not begun:
            reason = "a key was made, and nobody recorded an enrolment or vouching"
        elif open_before:
            reason = "another key was made while the one before was in force"
        else:
            # It could not be made at first, or the one before was revoked: the
            # person, or an operator, asked again.
            continue
        yield event.finding(Check.ENROLLED_UNINVITED, reason)


def _enrolled(history: PersonHistory) -> Iterator[Finding]:
    """Yield enrolments without an invitation.

    Who has enrolled before begins anew by an officer alone. Their invitation counts by
    what only an officer may record, for `api` records invitations of its own.
    """
    since: datetime | None = None
    for event in history.of(EventKind.PERSON_CREATED, EventKind.PERSON_ENROLLED):
        is_enrolment = event.kind == EventKind.PERSON_ENROLLED.value
        if since is None:
            wanted, reason = (
                EventKind.PERSON_INVITED,
                "enrolled, and nobody recorded an invitation",
            )
        else:
            wanted, reason = (
                EventKind.PERSON_REISSUED,
                "enrolled once more, and no officer recorded that it was to be",
            )
        if is_enrolment and not any(
            each.at <= event.at + SKEW and (since is None or each.at > since)
            for each in history.of(wanted)
        ):
            yield event.finding(Check.ENROLLED_UNINVITED, reason)
        since = event.at


def _ended(history: PersonHistory, credential: str, at: datetime) -> bool:
    """Return whether a credential was over by then, as far as the audit says."""
    kinds = EventKind.REVOCATION_ASKED, EventKind.REVOCATION_FOUND
    for event in history.of(*kinds):
        if event.text("credential") == credential and event.at <= at + SKEW:
            return True
    for event in history.of(EventKind.PERSON_REISSUED):
        before = event.detail.get("before")
        ended = before.get("credentials") if isinstance(before, Mapping) else None
        if isinstance(ended, list) and credential in ended:
            return True
    for event in history.of(EventKind.SIGN_PASSWORD_REPLACED):
        ended = event.detail.get("ended")
        if isinstance(ended, list) and credential in ended:
            return True
    return False


def _renewed_in_force(
    history: PersonHistory, revoked: Mapping[str, datetime]
) -> Iterator[Finding]:
    """Yield keys that were certified again after their revocation."""
    kinds = EventKind.CERTIFICATE_RENEWED, EventKind.CERTIFICATE_IMPORTED
    for event in history.of(*kinds):
        at = revoked.get(event.text("credential"))
        if at is not None and event.at > at + SKEW:
            yield event.finding(
                Check.USED_AFTER_REVOCATION,
                "the key was certified again after its revocation of "
                f"{at:%Y-%m-%d %H:%M:%S} UTC",
            )


def _rows(history: PersonHistory) -> Iterator[Finding]:
    """Yield credentials and certificates that the audit does not know."""
    issued = {
        each.text("credential"): each
        for each in history.of(EventKind.CREDENTIAL_ISSUED)
    }
    serials = {
        each.text("serial")
        for each in history.of(
            EventKind.CREDENTIAL_ISSUED, EventKind.CERTIFICATE_RENEWED
        )
    }
    spkis = {}
    for held in history.credentials:
        known = issued.get(held.id)
        if known is None or known.text("spkiSha256") not in {"", held.spki_sha256}:
            yield Finding(
                Check.CREDENTIAL_UNRECORDED,
                "a credential stands in the record, and nobody recorded its making"
                if known is None
                else "a credential has another key than was recorded",
                at=held.created,
                person=held.person,
                credential=held.id,
            )
        spkis[held.id] = held.spki_sha256
        if (reason := _unknown(history, held)) is not None:
            yield Finding(
                Check.CERTIFICATE_UNKNOWN,
                reason,
                person=held.person,
                credential=held.id,
                serial=held.serial or None,
            )
    for row in history.certificates:
        yield from _certificate(row, serials, spkis.get(row.credential))


def _unknown(history: PersonHistory, held: CredentialRow) -> str | None:
    """Return why the certificate of a credential is no rightful one; None: it is."""
    if held.certified_spki_sha256 not in {"", held.spki_sha256}:
        return "it signs with a certificate on another key"
    own = [row for row in history.certificates if row.credential == held.id]
    if any(row.sha256 == held.certificate_sha256 for row in own):
        return None
    for event in history.of(EventKind.CERTIFICATE_IMPORTED):
        after = event.detail.get("after")
        told = after.get("sha256") if isinstance(after, Mapping) else None
        if event.text("credential") == held.id and told == held.certificate_sha256:
            return None
    return "it signs with a certificate that was neither issued here nor imported"


def _certificate(
    row: CertificateRow, serials: set[str], spki_sha256: str | None
) -> Iterator[Finding]:
    about = {
        "at": row.issued,
        "person": row.person,
        "credential": row.credential,
        "serial": row.serial,
    }
    if row.serial not in serials:
        yield Finding(
            Check.CERTIFIED_UNASKED,
            "a certificate stands in the record, and nobody recorded its issue",
            **about,  # type: ignore[arg-type]  # members by their names
        )
    if spki_sha256 and row.certified_spki_sha256 not in {"", spki_sha256}:
        yield Finding(
            Check.CERTIFICATE_UNKNOWN,
            "a certificate of a credential is on another key",
            **about,  # type: ignore[arg-type]  # members by their names
        )
