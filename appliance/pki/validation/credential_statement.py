"""Statement of a credential: whose key it is, as its certificate says.

    statement = read_statement(person, credential, authorities)

Rows of the record say whose a key is, and whoever writes to the database writes them. A
certificate cannot be written there: its CA signed it. So it is the certificate that
states key, name and CUIL, and a row counts as far as it agrees. The CAs are those of
files; nothing here reads the record.

Source: RFC 5280, 6.1; design §4.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from appliance.domain.errors import (
    ChainRefusedError,
    CredentialRefusedError,
    ErrorCode,
)
from appliance.domain.people.identity import Credential, Person
from appliance.domain.pki.certificates import POLICIES
from appliance.domain.vocab import StatementFault, VouchedBy
from appliance.pki.validation.certificate_rules import (
    der_of,
    extension,
    name_of,
    reading,
)
from appliance.pki.validation.path_validation import Expected, checked_path

_FAULTS: Final[Mapping[ErrorCode, StatementFault]] = {
    ErrorCode.CHAIN_MALFORMED: StatementFault.UNREADABLE,
    ErrorCode.CERTIFICATE_KEY_DIFFERS: StatementFault.KEY,
    ErrorCode.CERTIFICATE_CUIL_MISSING: StatementFault.CUIL,
    ErrorCode.CERTIFICATE_CUIL_DIFFERS: StatementFault.CUIL,
    ErrorCode.CERTIFICATE_IS_CA: StatementFault.PURPOSE,
    ErrorCode.CERTIFICATE_KEY_USAGE: StatementFault.PURPOSE,
    ErrorCode.CERTIFICATE_EXTENDED_KEY_USAGE: StatementFault.PURPOSE,
}
"""Faults by the code of a refused chain; any other code is the issuer's fault."""


@dataclass(frozen=True, slots=True)
class Authorities:
    """CAs that may certify signers, DER."""

    own: tuple[bytes, ...] = field(repr=False)
    """The installation's root and the CA below it."""
    outside: tuple[bytes, ...] = field(default=(), repr=False)
    """Roots of outside CAs."""


@dataclass(frozen=True, slots=True)
class Statement:
    """Contents of a certificate that agrees with its credential and its person."""

    name: str
    """CN of the subject; of an outside CA's certificate that has none, all of it."""
    cuil: str
    """Eleven digits."""
    is_outside: bool
    """Certified by an outside CA, which may write a name in its own way."""
    not_before: datetime
    not_after: datetime
    vouched_by: VouchedBy | None
    """Voucher for the identity, by the certificate's policy; None: not said."""

    def demand_at(self, at: datetime) -> None:
        """Refuse a time at which the certificate is not valid.

        Args:
            at: aware.

        Raises:
            CredentialRefusedError: `DATES`.
        """
        if not self.not_before <= at < self.not_after:
            told = f"valid from {self.not_before} to {self.not_after}"
            raise CredentialRefusedError(StatementFault.DATES, told)


def read_statement(
    person: Person, credential: Credential, authorities: Authorities
) -> Statement:
    """Check a credential's certificate, and read whose key it is.

    Neither dates nor revocation are looked at.

    Args:
        person: the credential's, as recorded.
        credential: as recorded.
        authorities: CAs that count.

    Raises:
        CredentialRefusedError: the fault, see `StatementFault`.
    """
    anchors = (*authorities.own, *authorities.outside)
    expected = Expected(credential.spki, person.cuil)
    try:
        with reading():
            chain = [
                x509.load_der_x509_certificate(each)
                for each in (credential.certificate, *credential.chain)
            ]
            path = checked_path(chain, expected, anchors)
            statement = Statement(
                name=name_of(path[0].subject),
                cuil=person.cuil,
                is_outside=der_of(path[-1]) not in authorities.own,
                not_before=path[0].not_valid_before_utc,
                not_after=path[0].not_valid_after_utc,
                vouched_by=_vouched_by(path[0]),
            )
            names = _names(path[0])
    except ChainRefusedError as exc:
        fault = _FAULTS.get(exc.code, StatementFault.ISSUER)
        raise CredentialRefusedError(fault, exc.code.value) from exc
    # An outside CA may write "PEREZ JUAN": there the CUIL says who it is.
    is_named = statement.is_outside or names == [person.name.strip()]
    if not is_named or not statement.name.strip():
        told = "the certificate's name is not the person's"
        raise CredentialRefusedError(StatementFault.NAME, told)
    return statement


def _names(signer: x509.Certificate) -> list[str]:
    """Every CN of a subject."""
    found = signer.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return [str(each.value) for each in found]


def _vouched_by(signer: x509.Certificate) -> VouchedBy | None:
    """Voucher for a person, where exactly one policy of the project names one."""
    found = extension(signer, x509.CertificatePolicies)
    if found is None:
        return None
    policies = {each.policy_identifier.dotted_string for each in found}
    named = [word for word, policy in POLICIES.items() if policy in policies]
    return named[0] if len(named) == 1 else None


def as_certified(person: Person, credential: Credential) -> Person:
    """The person with the name that a credential's certificate has.

    Stamps show this name, and previews of stamps do. For a certificate of the internal
    CA it is the recorded one, else the key is refused before it is used. An outside
    CA's certificate has the name that this CA proved.

    Args:
        person: as recorded.
        credential: that they sign with.
    """
    name = _certified_name(credential.certificate)
    return person if name is None else replace(person, name=name)


@lru_cache(maxsize=1024)
def _certified_name(certificate: bytes) -> str | None:
    """A certificate's name; None for one that cannot be read."""
    with suppress(ChainRefusedError), reading():
        return name_of(x509.load_der_x509_certificate(certificate).subject)
    return None
