"""Revocations of a chain's certificates by the data of the file.

Each CRL and each OCSP answer that revokes a certificate's serial number is asked by
itself. So other data, good or damaged, cannot hide what it says. It counts if a key of
the chain signed it, or the key of a certificate that the chain's authorities issued for
that. Runs in a confined job only.

pyHanko asks OCSP answers first, and CRLs only where no answer is good; and it goes down
from the root, to the first certificate whose data are wrong.

Source: RFC 5280, 6.3; RFC 6960, 3.2; ETSI EN 319 102-1, 5.2.6.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from asn1crypto import ocsp, x509
from cryptography.x509 import CertificateRevocationList, load_der_x509_crl
from pyhanko.sign.validation.status import RevocationDetails
from pyhanko_certvalidator import ValidationContext
from pyhanko_certvalidator.authority import AuthorityWithCert
from pyhanko_certvalidator.errors import RevokedError
from pyhanko_certvalidator.ltv.types import (
    ValidationTimingInfo,
    ValidationTimingParams,
)
from pyhanko_certvalidator.path import ValidationPath
from pyhanko_certvalidator.policy_decl import CertRevTrustPolicy
from pyhanko_certvalidator.revinfo.archival import CRLContainer, OCSPContainer
from pyhanko_certvalidator.revinfo.validate_crl import verify_crl
from pyhanko_certvalidator.revinfo.validate_ocsp import verify_ocsp_response

from worker.sandbox.verify.issuers import Issuers, KeyKindValidator

Data = OCSPContainer | CRLContainer


@dataclass(frozen=True, slots=True)
class Revocation:
    """A certificate that data of the file revoke."""

    certificate: x509.Certificate
    details: RevocationDetails


class Revocations:
    """What the data of one file revoke.

    Args:
        ocsps: OCSP answers that the file ever had.
        crls: CRLs that it ever had.
        issuers: certificates of the file.
        policy: asks for no revocation data, and takes data of any age.
    """

    def __init__(
        self,
        ocsps: Iterable[OCSPContainer],
        crls: Iterable[CRLContainer],
        issuers: Issuers,
        policy: CertRevTrustPolicy,
    ) -> None:
        self._data: list[Data] = [*ocsps, *crls]
        self._issuers = issuers
        self._policy = policy
        self._lists: dict[int, CertificateRevocationList] = {}
        self._naming: dict[int, list[int]] = {}
        self._signed: dict[tuple[bytes, int], bool] = {}
        self._answers: dict[tuple[object, ...], RevocationDetails | None] = {}

    def of_path(
        self, path: ValidationPath, times: Sequence[datetime]
    ) -> list[Revocation]:
        """Return the revocations of a chain's certificates, at any time.

        Args:
            path: the chain.
            times: at which it counts. Who signed the data must have been valid at one
                of them, or when the data were issued.

        Raises:
            TooManyIssuersError: too many certificates were tried in this file.
        """
        certificates = list(path.iter_certs(include_root=False))
        found = []
        for position, certificate in enumerate(certificates):
            numbers = self._naming_one(certificate)
            if not numbers:
                continue
            above = ValidationPath(
                path.trust_anchor, certificates[:position], certificate
            )
            is_authority = position < len(certificates) - 1
            for number in numbers:
                details = self._answer(above, number, times, is_authority=is_authority)
                if details is not None:
                    found.append(Revocation(certificate, details))
        return found

    def _naming_one(self, certificate: x509.Certificate) -> list[int]:
        """Return the data that revoke a certificate's serial number, of any issuer."""
        serial = certificate.serial_number
        if serial not in self._naming:
            self._naming[serial] = [
                number
                for number, each in enumerate(self._data)
                if (
                    _is_revoking(each, serial)
                    if isinstance(each, OCSPContainer)
                    else self._may_list(each, number, serial)
                )
            ]
        return self._naming[serial]

    def _may_list(self, data: CRLContainer, number: int, serial: int) -> bool:
        """Whether a CRL has a serial number, or cannot be read by cryptography.

        asn1crypto reads a CRL entry by entry.
        """
        try:
            if number not in self._lists:
                self._lists[number] = load_der_x509_crl(data.crl_data.dump())
            listed = self._lists[number]
            found = listed.get_revoked_certificate_by_serial_number(serial)
        except (ValueError, TypeError, OverflowError):
            return True
        return found is not None

    def _answer(
        self,
        path: ValidationPath,
        number: int,
        times: Sequence[datetime],
        *,
        is_authority: bool,
    ) -> RevocationDetails | None:
        """Ask one datum for the last certificate of a path."""
        issued = self._data[number].issuance_date
        for signer in self._signers(path, number):
            for at in dict.fromkeys([*([issued] if issued else []), *times]):
                chain = tuple(
                    each.sha256 for each in path.iter_certs(include_root=True)
                )
                key = chain, is_authority, number, signer.sha256, at
                if key not in self._answers:
                    self._answers[key] = self._ask(
                        path, number, signer, at, is_authority=is_authority
                    )
                answer = self._answers[key]
                if answer is not None:
                    return answer
        return None

    def _signers(self, path: ValidationPath, number: int) -> Iterator[x509.Certificate]:
        """Yield the certificates whose keys signed a datum, and which may have."""
        authorities = _authorities(path)
        for authority in authorities:
            if self._has_signed(authority, number):
                yield authority
        for candidate in self._named(number):
            if (
                candidate.sha256 != path.last.sha256
                and any(
                    candidate.issuer == each.subject
                    and self._issuers.has_signed(each, candidate)
                    for each in authorities
                )
                and self._has_signed(candidate, number)
            ):
                yield candidate

    def _named(self, number: int) -> list[x509.Certificate]:
        """Return the file's certificates of the name, or the key, that signed a datum.

        An OCSP answer's own certificates are registered with it.
        """
        each = self._data[number]
        if isinstance(each, CRLContainer):
            return list(self._issuers.retrieve_by_name(each.crl_data.issuer))
        basic = each.extract_basic_ocsp_response()
        if basic is None:
            return []
        for own in basic["certs"] or ():
            self._issuers.register(own)
        responder: ocsp.ResponderId = basic["tbs_response_data"]["responder_id"]
        if responder.name == "by_key":
            key = responder.native
            return [
                *self._issuers.retrieve_many_by_key_hash(key),
                *self._issuers.retrieve_many_by_key_identifier(key),
            ]
        return list(self._issuers.retrieve_by_name(responder.chosen))

    def _has_signed(self, signer: x509.Certificate, number: int) -> bool:
        key = signer.public_key.sha256, number
        if key not in self._signed:
            self._signed[key] = _is_signed_by(self._data[number], signer)
        return self._signed[key]

    def _ask(
        self,
        path: ValidationPath,
        number: int,
        signer: x509.Certificate,
        at: datetime,
        *,
        is_authority: bool,
    ) -> RevocationDetails | None:
        asked = self._data[number]
        if not _is_delta(asked):
            sets = [[asked]]
        else:
            # pyHanko reads a delta CRL beside a complete one alone.
            sets = [
                [asked, each]
                for other, each in enumerate(self._data)
                if isinstance(each, CRLContainer)
                and not _is_delta(each)
                and self._has_signed(signer, other)
            ]
        for data in sets:
            context = self._context(path, data, signer, at)
            try:
                asyncio.run(_demand_unrevoked(path, context, data))
            except RevokedError as exc:
                return RevocationDetails(is_authority, exc.revocation_dt, exc.reason)
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001, S112 (a forged datum proves nothing)
                continue
        return None

    def _context(
        self,
        path: ValidationPath,
        data: Sequence[Data],
        signer: x509.Certificate,
        at: datetime,
    ) -> ValidationContext:
        """One datum, and who signed it. The certificate's own word is left out."""
        registry = Issuers()
        registry.register_multiple([signer, *_authorities(path)])
        context = ValidationContext(
            trust_roots=[],
            allow_fetching=False,
            moment=at,
            certificate_registry=registry,
            signature_validator=KeyKindValidator(),
            ocsps=[each for each in data if isinstance(each, OCSPContainer)],
            crls=[each for each in data if isinstance(each, CRLContainer)],
            revinfo_policy=self._policy,
        )
        # A revocation of any time is returned: the caller decides by its time.
        context.timing_params = ValidationTimingParams(
            ValidationTimingInfo(at, at, point_in_time_validation=False),
            context.timing_params.time_tolerance,
        )
        return context


async def _demand_unrevoked(
    path: ValidationPath, context: ValidationContext, data: Sequence[Data]
) -> None:
    """Ask data for the last certificate of a path.

    Raises:
        RevokedError: they revoke it.
        ValidationError: they do not say that it is good.
    """
    if isinstance(data[0], OCSPContainer):
        await verify_ocsp_response(path.last, path, context)
    else:
        await verify_crl(path.last, path, context, use_deltas=len(data) > 1)


def _authorities(path: ValidationPath) -> list[x509.Certificate]:
    """Return the certificates above the last one of a path, the nearest first."""
    root = path.trust_anchor.authority
    above = [*path.iter_certs(include_root=False)][:-1]
    if isinstance(root, AuthorityWithCert):
        above.insert(0, root.certificate)
    return above[::-1]


def _is_delta(data: Data) -> bool:
    return (
        isinstance(data, CRLContainer)
        and data.crl_data.delta_crl_indicator_value is not None
    )


def _is_revoking(answer: OCSPContainer, serial: int) -> bool:
    try:
        told = answer.extract_single_response()
        return (
            told is not None
            and told["cert_status"].name == "revoked"
            and told["cert_id"]["serial_number"].native == serial
        )
    except (ValueError, TypeError, KeyError):
        return False


def _is_signed_by(data: Data, signer: x509.Certificate) -> bool:
    try:
        if isinstance(data, CRLContainer):
            signed, content = data.crl_data, data.crl_data["tbs_cert_list"]
        else:
            basic = data.extract_basic_ocsp_response()
            if basic is None:
                return False
            signed, content = basic, basic["tbs_response_data"]
        KeyKindValidator().validate_signature(
            signed["signature"].native,
            content.dump(),
            signer.public_key,
            signed["signature_algorithm"],
        )
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 (a forged datum raises anything)
        return False
    return True
