"""Credentials: what their holders see of them, and certificates from outside.

Source: design §6.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import structlog
from cryptography import x509

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import (
    CHAIN_IN_USE,
    ApplianceError,
    CertificateUnverifiableError,
    ChainRefusedError,
    ErrorCode,
)
from appliance.domain.ids import CredentialId, PersonId, TaskId
from appliance.domain.keys.credentials import CredentialView
from appliance.domain.people.identity import Credential
from appliance.domain.pki.certificates import is_outside, serial_text
from appliance.domain.pki.trust_store import AnchorPurpose
from appliance.domain.ports import PdfInspector
from appliance.domain.vocab import CredentialState, EventKind, RevocationReason
from appliance.keys.credential_store import CredentialStore
from appliance.people.person_store import PersonStore
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.revocation import Revocations
from appliance.pki.validation.certificate_rules import name_of, reading
from appliance.pki.validation.path_validation import CheckedChain, Expected, check_chain
from appliance.pki.validation.sample_report import demand_valid, judging
from appliance.pki.validation.trust_anchors import Trust
from appliance.pki.validation.trust_store import FormerCertificateStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.signing.activations.activation_store import ActivationStore

_log = structlog.get_logger(__name__)
_OVER: Final = frozenset({CredentialState.REVOKING, CredentialState.REVOKED})


class Credentials:
    """The use cases around a person's credentials.

    Args:
        store: the record.
        clock: the time.
        trust: roots that chains from outside may end at.
        revocations: revokes.
        inspector: the sandbox, which tries chains from outside.
    """

    def __init__(
        self,
        store: Database,
        clock: Clock,
        trust: Trust,
        revocations: Revocations,
        inspector: PdfInspector,
    ) -> None:
        self._store = store
        self._clock = clock
        self._trust = trust
        self._revocations = revocations
        self._inspector = inspector

    async def of(self, person: PersonId) -> list[CredentialView]:
        """Every credential of a person, newest first."""
        async with self._store.read() as transaction:
            held = await CredentialStore(transaction).of_person(person)
            return [await view_of(transaction, one) for one in held]

    async def get(
        self, credential: CredentialId, owner: PersonId | None = None
    ) -> CredentialView:
        """One credential.

        Args:
            credential: which.
            owner: whose it must be; None for anybody's.

        Raises:
            ApplianceError: `CREDENTIAL_NOT_FOUND`, also for another's.
        """
        async with self._store.read() as transaction:
            held = await _held(transaction, credential, owner)
            return await view_of(transaction, held)

    async def revoke(
        self,
        credential: CredentialId,
        reason: RevocationReason,
        actor: str,
        owner: PersonId | None = None,
    ) -> TaskId:
        """Revoke a credential: from here on it signs nothing.

        Args:
            credential: which.
            reason: told in CRL and OCSP answers.
            actor: for the audit.
            owner: whose it must be; None for anybody's.

        Returns:
            The task that publishes it.

        Raises:
            ApplianceError: `CREDENTIAL_NOT_FOUND`; `CREDENTIAL_STATE` for one
                that is revoked already.
        """
        async with self._store.write() as transaction:
            held = await _held(transaction, credential, owner, lock=True)
            _require(held, held.state not in _OVER)
            return await self._revocations.submit(
                transaction, credential, reason, actor
            )

    async def import_chain(
        self,
        credential: CredentialId,
        pem: bytes,
        actor: str,
        owner: PersonId | None = None,
    ) -> CredentialView:
        """Have a credential sign with a certificate that an outside CA issued.

        The certificate it had stays on record.

        Args:
            credential: in use.
            pem: the new certificate first, then each one's issuer; the root may
                be left out.
            actor: for the audit.
            owner: whose it must be; None for anybody's.

        Returns:
            The credential with its new certificate.

        Raises:
            ChainRefusedError: the chain does not fit (see `check_chain`), or
                `CERTIFICATE_ISSUED_HERE`.
            CertificateUnverifiableError: our own verifier would not call signatures
                with it valid.
            ApplianceError: `CREDENTIAL_NOT_FOUND`; `CREDENTIAL_STATE` for one
                that is not in use; `ALREADY_EXISTS` for what it signs with
                already; `BUSY` while an activation of it is open, which is
                signed and finished with the certificate that it began with;
                `SANDBOX_UNAVAILABLE` or `OVERLOADED`: it cannot be tried now.
        """
        anchors = await self._trust.roots(AnchorPurpose.SIGNERS)
        async with self._store.read() as transaction:
            held = await _held(transaction, credential, owner)
            checked = await self._checked(transaction, held, pem, anchors)
        # Outside of a transaction, which would wait for the sandbox.
        await self._try(checked)
        async with self._store.write() as transaction:
            held = await _held(transaction, credential, owner, lock=True)
            checked = await self._checked(transaction, held, pem, anchors)
            if await ActivationStore(transaction).any_open(credential):
                raise ApplianceError(ErrorCode.BUSY)
            return await self._replace(transaction, held, checked, actor)

    async def _checked(
        self,
        transaction: Transaction,
        held: Credential,
        pem: bytes,
        anchors: Sequence[bytes],
    ) -> CheckedChain:
        """Check a chain against a credential, as it stands now.

        Raises:
            ChainRefusedError: see `import_chain`.
            ApplianceError: `CREDENTIAL_STATE`, `ALREADY_EXISTS`.
        """
        _require(held, held.state is CredentialState.ACTIVE)
        person = await PersonStore(transaction).get(held.person)
        expected = Expected(held.spki, person.cuil if person else "")
        checked = check_chain(pem, expected, anchors, self._clock.now())
        await _check_new(transaction, held, checked)
        return checked

    async def _try(self, checked: CheckedChain) -> None:
        """Have the verifier judge a sample that is signed under stand-ins of a chain.

        The owner's key signs only by their password, which an import does not ask for.

        Raises:
            CertificateUnverifiableError: it does not call the sample valid.
            ApplianceError: `SANDBOX_UNAVAILABLE` or `OVERLOADED`.
        """
        path = [checked.certificate, *checked.issuers, checked.root]
        try:
            with judging():
                report = await self._inspector.try_chain(path)
            demand_valid(report)
        except CertificateUnverifiableError as exc:
            _log.warning("chain.unverifiable", reason=exc.reason)
            raise

    async def _replace(
        self,
        transaction: Transaction,
        held: Credential,
        checked: CheckedChain,
        actor: str,
    ) -> CredentialView:
        """Put a certificate in the place of the one before it."""
        certified = replace(
            held,
            certificate=checked.certificate,
            chain=checked.issuers,
            not_before=checked.not_before,
            not_after=checked.not_after,
        )
        await FormerCertificateStore(transaction).keep(held, self._clock.now())
        await CredentialStore(transaction).renewed(certified)
        transaction.audit.add(
            AuditEvent(
                EventKind.CERTIFICATE_IMPORTED,
                actor,
                detail={
                    "person": held.person,
                    "credential": held.id,
                    "before": _facts(held),
                    "after": _facts(certified),
                },
            )
        )
        return await view_of(transaction, certified)


async def _held(
    transaction: Transaction,
    credential: CredentialId,
    owner: PersonId | None,
    *,
    lock: bool = False,
) -> Credential:
    """Read a credential.

    Raises:
        ApplianceError: `CREDENTIAL_NOT_FOUND`.
    """
    held = await CredentialStore(transaction).get(credential, lock=lock)
    if held is None or (owner is not None and held.person != owner):
        raise ApplianceError(ErrorCode.CREDENTIAL_NOT_FOUND)
    return held


def _require(held: Credential, fits: bool) -> None:  # noqa: FBT001 (a condition)
    """Refuse a credential whose state does not fit.

    Raises:
        ApplianceError: `CREDENTIAL_STATE`.
    """
    if not fits:
        raise ApplianceError(
            ErrorCode.CREDENTIAL_STATE, params={"estado": held.state.value}
        )


async def _check_new(
    transaction: Transaction, held: Credential, checked: CheckedChain
) -> None:
    """Refuse a certificate of the internal CA, and the chain that is in use.

    Raises:
        ChainRefusedError: `CERTIFICATE_ISSUED_HERE`.
        ApplianceError: `ALREADY_EXISTS`.
    """
    issued = await CertificateStore(transaction).of_credential(held.id)
    if any(one.der == checked.certificate for one in issued):
        made = x509.load_der_x509_certificate(checked.certificate)
        raise ChainRefusedError(
            ErrorCode.CERTIFICATE_ISSUED_HERE, 0, subject=name_of(made.subject)
        )
    if (held.certificate, held.chain) == (checked.certificate, checked.issuers):
        raise ApplianceError(
            ErrorCode.ALREADY_EXISTS,
            params={"field": "cadena"},
            extras={"field": "cadena"},
            sentence=CHAIN_IN_USE,
        )


def _facts(held: Credential) -> dict[str, object]:
    made = x509.load_der_x509_certificate(held.certificate)
    return {
        "serial": serial_text(made.serial_number),
        "sha256": hashlib.sha256(held.certificate).hexdigest(),
        "until": held.not_after.isoformat(timespec="seconds"),
    }


async def view_of(transaction: Transaction, held: Credential) -> CredentialView:
    """A credential for people, also one whose certificate cannot be read.

    Args:
        transaction: of a transaction.
        held: as it is kept.
    """
    holder, issuer, serial = _names(held.certificate)
    person = await PersonStore(transaction).get(held.person)
    issued = await CertificateStore(transaction).of_credential(held.id)
    revoked = next((one for one in issued if one.revoked_at is not None), None)
    return CredentialView(
        id=held.id,
        person=held.person,
        state=held.state,
        mode=held.key_mode.value,
        algorithm=held.algorithm.value,
        holder=holder or (person.name if person else ""),
        cuil=person.cuil if person else "",
        issuer=issuer,
        serial=serial,
        not_before=held.not_before,
        not_after=held.not_after,
        vouched_by=held.vouched_by,
        sha256=hashlib.sha256(held.certificate).hexdigest(),
        outside=is_outside(held.certificate, issued),
        certificate=held.certificate,
        chain=held.chain,
        reason=revoked.reason if revoked else None,
        revoked_at=revoked.revoked_at if revoked else None,
    )


def _names(certificate: bytes) -> tuple[str, str, str]:
    """Holder, issuer and serial number; empty for what is no certificate."""
    try:
        with reading():
            made = x509.load_der_x509_certificate(certificate)
            holder, issuer = name_of(made.subject), name_of(made.issuer)
            return holder, issuer, serial_text(made.serial_number)
    except ChainRefusedError:
        return "", "", ""
