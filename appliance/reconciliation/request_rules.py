"""Rules on one request: each use of a key was consented to, once, by a key in force."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from appliance.domain.audit.reconciliation import (
    Check,
    Event,
    Finding,
    Item,
    RequestHistory,
)
from appliance.domain.vocab import EventKind
from appliance.reconciliation.writers import SKEW, wrong_writer

EVENTS: Final = (
    EventKind.REQUEST_CREATED,
    EventKind.REQUEST_TURN,
    EventKind.ACTIVATION_CREATED,
    EventKind.KEY_INTENDED,
    EventKind.KEY_USED,
    EventKind.REQUEST_RETURNED,
    EventKind.REQUEST_SIGNED,
    EventKind.DOCUMENT_RAISED,
)
"""What the rules read."""


def judge_request(
    history: RequestHistory, revoked: Mapping[str, datetime]
) -> Iterator[Finding]:
    """Yield what no honest history of a request has.

    Args:
        history: of the request.
        revoked: times of revocations, by credential and by serial number.
    """
    for event in history.events:
        if (finding := wrong_writer(event)) is not None:
            yield finding
    yield from _consents(history)
    yield from _documents(history)
    yield from _uses(history)
    yield from _revoked(history, revoked)
    yield from _published(history)


def _consents(history: RequestHistory) -> Iterator[Finding]:
    """Yield uses of a key, and activations, that nobody consented to."""
    consents: dict[str | None, Event] = {}
    for consent in history.of(EventKind.ACTIVATION_CREATED):
        if consent.is_of_a_front:
            consents.setdefault(consent.activation, consent)
    told = set()
    for event in history.of(EventKind.KEY_INTENDED, EventKind.KEY_USED):
        reason = _without_consent(event, consents.get(event.activation))
        if reason and event.activation not in told:
            told.add(event.activation)
            yield event.finding(Check.USED_WITHOUT_CONSENT, reason)
    for item in history.items:
        reason = _not_consented_to(item, consents.get(item.activation))
        if reason and item.activation not in told:
            told.add(item.activation)
            yield Finding(
                Check.USED_WITHOUT_CONSENT,
                reason,
                request=history.request,
                activation=item.activation,
                credential=item.credential,
            )


def _documents(history: RequestHistory) -> Iterator[Finding]:
    """Yield consents to a document that the request was neither made for nor given.

    The audit does not say what is handed on within a turn; what each signer of it was
    shown is compared before the signature.
    """
    if history.has_shared_turn:
        return
    given = {
        each.text("documentSha256")
        for each in history.of(EventKind.REQUEST_CREATED, EventKind.REQUEST_TURN)
    }
    if given <= {""}:
        return
    for consent in history.of(EventKind.ACTIVATION_CREATED):
        if consent.text("documentSha256") not in {"", *given}:
            yield consent.finding(
                Check.DOCUMENT_SWAPPED,
                "consented to a document that the request was neither made for nor "
                "given in its turn",
            )


def _without_consent(event: Event, given: Event | None) -> str:
    """Return why a use of a key was not consented to; empty: it was."""
    if given is None:
        return f"{event.kind}, and no front recorded the consent"
    if _differs(event, given, "documentSha256"):
        return f"{event.kind} for another document than was consented to"
    return ""


def _not_consented_to(item: Item, given: Event | None) -> str:
    """Return why an activation of the record was not; empty: it was."""
    if given is None:
        return "an activation stands in the record, and nobody consented to it"
    if given.text("credential") not in {"", item.credential}:
        return "an activation has another credential than was consented to"
    return ""


def _differs(event: Event, consent: Event, member: str) -> bool:
    """Return whether two rows name different values; one may name none."""
    found, given = event.text(member), consent.text(member)
    return bool(found) and bool(given) and found != given


def _uses(history: RequestHistory) -> Iterator[Finding]:
    """Yield keys that were used more than once for one document."""
    used: dict[tuple[str | None, int], list[Event]] = defaultdict(list)
    intended: dict[tuple[str | None, int], list[Event]] = defaultdict(list)
    for event in history.of(EventKind.KEY_USED):
        used[event.activation, event.item].append(event)
    for event in history.of(EventKind.KEY_INTENDED):
        intended[event.activation, event.item].append(event)
    for place, events in used.items():
        first, *more = events
        later = next((each for each in intended[place] if _follows(each, first)), None)
        again = more[0] if more else later
        if again is not None:
            yield again.finding(
                Check.USED_TWICE,
                f"the key was used for one document {len(events)} times"
                if more
                else "the key was to be used again for a document that it had signed",
            )
    for place, events in intended.items():
        attempts = [event.attempt for event in events]
        if len(set(attempts)) < len(attempts) and len(used[place]) < 2:  # noqa: PLR2004 (told above)
            yield events[-1].finding(
                Check.USED_TWICE, "two uses of the key have the number of one attempt"
            )
    for item in history.items:
        if item.uses > 1:
            yield Finding(
                Check.USED_TWICE,
                f"the record has {item.uses} completed uses of the key",
                request=history.request,
                activation=item.activation,
                credential=item.credential,
            )
    yield from _signed_again(history)


def _follows(intended: Event, used: Event) -> bool:
    """Return whether a key was to be used once more after it had signed."""
    if intended.attempt is not None and used.attempt is not None:
        return intended.attempt > used.attempt
    return intended.at > used.at + SKEW


def _signed_again(history: RequestHistory) -> Iterator[Finding]:
    """Yield a second activation that signed what the first had not given back."""
    returned = {each.activation for each in history.of(EventKind.REQUEST_RETURNED)}
    firsts: dict[str | None, Event] = {}
    for event in history.of(EventKind.KEY_USED):
        firsts.setdefault(event.activation, event)
    kept = [each for each in firsts if each not in returned]
    if len(kept) > 1:
        yield firsts[kept[-1]].finding(
            Check.USED_TWICE, "two activations used the key for one request"
        )


def _revoked(
    history: RequestHistory, revoked: Mapping[str, datetime]
) -> Iterator[Finding]:
    """Yield uses of keys that were to sign no more."""
    credentials = {item.activation: item.credential for item in history.items}
    for consent in history.of(EventKind.ACTIVATION_CREATED):
        if consent.activation is not None and consent.text("credential"):
            credentials[consent.activation] = consent.text("credential")
    for event in history.of(EventKind.KEY_INTENDED):
        credential = credentials.get(event.activation or "", "")
        names = credential, event.text("serial")
        at = min((revoked[name] for name in names if name in revoked), default=None)
        if at is not None and event.at > at + SKEW:
            yield event.finding(
                Check.USED_AFTER_REVOCATION,
                f"the key was used after its revocation of {at:%Y-%m-%d %H:%M:%S} UTC",
                credential=credential or None,
            )


def _published(history: RequestHistory) -> Iterator[Finding]:
    """Yield signatures and signed documents that the audit does not know."""
    used = {(each.activation, each.item) for each in history.of(EventKind.KEY_USED)}
    for item in history.items:
        if item.is_keyed and (item.activation, item.seq) not in used:
            yield Finding(
                Check.SIGNATURE_UNRECORDED,
                "the record has a signature, and no use of the key was recorded",
                request=history.request,
                activation=item.activation,
                credential=item.credential,
            )
    signed = [*history.of(EventKind.REQUEST_SIGNED)]
    for event in signed:
        if not used and event.detail.get("recovered") is not True:
            yield event.finding(
                Check.SIGNED_WITHOUT_KEY, "signed, and the key was never used for it"
            )
    if history.is_signed and not signed:
        yield Finding(
            Check.SIGNED_WITHOUT_KEY,
            "the record calls it signed, and nobody recorded that",
            request=history.request,
        )
    told = set(_recorded_versions(history))
    for version in history.versions:
        if version.sha256 not in told:
            yield Finding(
                Check.VERSION_UNRECORDED,
                f"version {version.number} of the signed document (SHA-256 "
                f"{version.sha256}) was published, and nobody recorded that",
                at=version.made,
                request=history.request,
            )


def _recorded_versions(history: RequestHistory) -> Iterator[str]:
    """Yield the SHA-256 of each version whose publication was recorded."""
    for event in history.of(EventKind.REQUEST_SIGNED):
        yield event.text("sha256")
    for event in history.of(EventKind.DOCUMENT_RAISED):
        after = event.detail.get("after")
        if isinstance(after, Mapping):
            yield str(after.get("sha256"))
