"""Whether a proven signer can sign at all, told before anything else is asked of them.

Signing checks all of this again by itself; here it is found early, with the time since
when it is so, so that nobody reads, places and types a password in vain.

Source: design §3, 1; decisions "attempts", "a known person".
"""

from datetime import datetime

from cryptography import x509

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.people.identity import Credential
from appliance.domain.pki.certificates import serial_text
from appliance.domain.requests.signer_bars import Bar
from appliance.domain.vocab import CredentialState, PersonState
from appliance.keys.credential_store import CredentialStore
from appliance.people.person_store import PersonStore
from appliance.pki.certificate_store import CertificateStore
from appliance.record.unit_of_work import Transaction


async def check_signer(
    transaction: Transaction, person_id: PersonId, clock: Clock
) -> None:
    """Refuse a signer who could not sign whatever they did.

    Args:
        transaction: the caller's.
        person_id: proven.
        clock: the time.

    Raises:
        ApplianceError: `CERTIFICATE_NOT_USABLE` or `SIGN_LOCKED`, with `obstacle` (see
            `Bar`) and, where it is known, `since` (ISO 8601).
    """
    refusal = await refusal_of(transaction, person_id, clock.now())
    if refusal is not None:
        raise refusal


async def refusal_of(
    transaction: Transaction, person_id: PersonId, now: datetime
) -> ApplianceError | None:
    """What keeps somebody from signing at a time, if anything does.

    Args:
        transaction: the caller's.
        person_id: whoever they are.
        now: the time.

    Returns:
        What `check_signer` would raise, or None.
    """
    person = await PersonStore(transaction).get(person_id)
    if person is None or person.state is not PersonState.ACTIVE:
        return _refusal(Bar.DISABLED, None)
    secret = await PersonStore(transaction).signing_secret(person_id)
    if secret is not None and secret.locked_at is not None:
        return _refusal(Bar.LOCKED, secret.locked_at)
    held = await CredentialStore(transaction).of_person(person_id)
    in_force = (each for each in held if each.state is CredentialState.ACTIVE)
    # Of two, which a changed database may have, the newest.
    active = next(in_force, None)
    if active is None:
        return await _without(transaction, held)
    return await _unusable(transaction, active, now)


async def bar_of_person(
    transaction: Transaction, person_id: PersonId, now: datetime
) -> Bar | None:
    """Return why somebody cannot sign at a time; None: they can.

    As `refusal_of`, but somebody who has not enrolled is told from a disabled person.

    Args:
        transaction: the caller's.
        person_id: whoever they are.
        now: the time.
    """
    person = await PersonStore(transaction).get(person_id)
    if person is not None and person.state is PersonState.INVITED:
        return Bar.INVITED
    refusal = await refusal_of(transaction, person_id, now)
    return None if refusal is None else Bar(str(refusal.extras["obstacle"]))


async def _unusable(
    transaction: Transaction, active: Credential, now: datetime
) -> ApplianceError | None:
    """Why a credential in force cannot be used at a time, if it cannot."""
    if active.not_after <= now:
        return _refusal(Bar.EXPIRED, active.not_after)
    if not active.usable_at(now):
        return _refusal(Bar.MISSING, None)
    if await CredentialStore(transaction).found_revoked(
        (active.certificate, *active.chain)
    ):
        return _refusal(Bar.REVOKED, None)
    return None


async def _without(transaction: Transaction, held: list[Credential]) -> ApplianceError:
    """Why somebody has no credential in force; `held` is newest first."""
    gone = {CredentialState.REVOKING, CredentialState.REVOKED}
    if not held or held[0].state not in gone:
        return _refusal(Bar.MISSING, None)
    serial = x509.load_der_x509_certificate(held[0].certificate).serial_number
    found = await CertificateStore(transaction).get(serial_text(serial))
    return _refusal(Bar.REVOKED, None if found is None else found.revoked_at)


def _refusal(bar: Bar, since: datetime | None) -> ApplianceError:
    code = ErrorCode.CERTIFICATE_NOT_USABLE
    if bar is Bar.LOCKED:
        code = ErrorCode.SIGN_LOCKED
    extras: dict[str, object] = {"obstacle": bar.value}
    if since is not None:
        extras["since"] = since.isoformat(timespec="seconds").replace("+00:00", "Z")
    return ApplianceError(code, extras=extras)
