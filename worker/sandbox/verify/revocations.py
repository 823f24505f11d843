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
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from asn1crypto import core, ocsp, x509
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

from worker.sandbox.verify.issuer_statements import revoked_by_answer, revoked_by_list
from worker.sandbox.verify.issuers import Issuers, KeyKindValidator

Data = OCSPContainer | CRLContainer


@dataclass(frozen=True, slots=True)
class Revocation:
    """A certificate that data of the file revoke."""

    certificate: x509.Certificate
    details: RevocationDetails


class Revocations:
    """Revocations that the data of one file tell.

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
        self._delegated: dict[
            tuple[tuple[bytes, ...], bytes, bool], list[x509.Certificate]
        ] = {}
        self._has_responders = False
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

    def entitled(self, path: ValidationPath) -> list[Data]:
        """Return the data whose signers may tell of a certificate of a chain.

        Args:
            path: the chain.
        """
        certificates = list(path.iter_certs(include_root=False))
        above = [
            ValidationPath(path.trust_anchor, certificates[:position], certificate)
            for position, certificate in enumerate(certificates)
        ]
        return [
            each
            for number, each in enumerate(self._data)
            if any(next(self._signers(one, number), None) for one in above)
        ]

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
        """Return whether a CRL lists a serial number, or cryptography cannot read it.

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
        if told := self._told_by_issuer(path, number):
            return replace(told, ca_revoked=is_authority)
        moments = [*_moments(self._data[number]), *times]
        for signer in self._signers(path, number):
            for at in dict.fromkeys(moments):
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

    def _told_by_issuer(
        self, path: ValidationPath, number: int
    ) -> RevocationDetails | None:
        """Read one datum that the issuer of a path's last certificate signed."""
        data, certificate = self._data[number], path.last
        issuer = next(iter(_authorities(path)), None)
        if issuer is None or not self._has_signed(issuer, number):
            return None
        try:
            if isinstance(data, OCSPContainer):
                return revoked_by_answer(data, certificate, issuer)
            listed = self._lists.get(number)
            if listed is None or data.crl_data.issuer != certificate.issuer:
                return None
            return revoked_by_list(listed, certificate.serial_number)
        except (ValueError, TypeError, KeyError, OverflowError):
            return None

    def _signers(self, path: ValidationPath, number: int) -> Iterator[x509.Certificate]:
        """Yield the certificates whose keys signed a datum, and which may have."""
        authorities = _authorities(path)
        for authority in authorities:
            if self._has_signed(authority, number):
                yield authority
        for candidate in self._delegates(authorities, number):
            if candidate.public_key.sha256 != path.last.public_key.sha256 and (
                self._has_signed(candidate, number)
            ):
                yield candidate

    def _delegates(
        self, authorities: Sequence[x509.Certificate], number: int
    ) -> Iterable[x509.Certificate]:
        """Return those whom authorities certified for data of this kind and name."""
        data = self._data[number]
        if isinstance(data, CRLContainer):
            return self._certified(authorities, data.crl_data.issuer, _may_sign_lists)
        basic = data.extract_basic_ocsp_response()
        if basic is None:
            return []
        self._register_responders()
        responder: ocsp.ResponderId = basic["tbs_response_data"]["responder_id"]
        return self._certified(authorities, responder.chosen, _may_answer)

    def _certified(
        self,
        authorities: Sequence[x509.Certificate],
        named: x509.Name | core.OctetString,
        may_sign: Callable[[x509.Certificate], bool],
    ) -> Iterable[x509.Certificate]:
        """Return the certificates of a name or key, without a look at any datum.

        Once for all data of that name: a file may have many of both.
        """
        above = tuple(each.sha256 for each in authorities)
        asked = above, named.dump(), may_sign is _may_answer
        if asked not in self._delegated:
            self._delegated[asked] = [
                each
                for each in self._of_name(named)
                if may_sign(each) and self._is_certified(authorities, each)
            ]
        return self._delegated[asked]

    def _register_responders(self) -> None:
        """Have the certificates that OCSP answers bring, once."""
        if self._has_responders:
            return
        self._has_responders = True
        for data in self._data:
            with contextlib.suppress(ValueError, TypeError, KeyError):
                if isinstance(data, OCSPContainer):
                    basic = data.extract_basic_ocsp_response()
                    for own in (basic and basic["certs"]) or ():
                        self._issuers.register(own)

    def _is_certified(
        self, authorities: Sequence[x509.Certificate], candidate: x509.Certificate
    ) -> bool:
        return any(
            candidate.issuer == each.subject
            and self._issuers.has_signed(each, candidate)
            for each in authorities
        )

    def _of_name(
        self, named: x509.Name | core.OctetString
    ) -> Iterable[x509.Certificate]:
        """Return the file's certificates of a name, or of a key."""
        if isinstance(named, x509.Name):
            return list(self._issuers.retrieve_by_name(named))
        key = named.native
        return [
            *self._issuers.retrieve_many_by_key_hash(key),
            *self._issuers.retrieve_many_by_key_identifier(key),
        ]

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


def _may_sign_lists(certificate: x509.Certificate) -> bool:
    """Return whether a certificate is one for CRLs.

    pyHanko takes one without key usage as well, of any person.

    Source: RFC 5280, 6.3.3 (f).
    """
    usage = certificate.key_usage_value
    return usage is not None and "crl_sign" in usage.native


def _may_answer(certificate: x509.Certificate) -> bool:
    """Return whether a certificate is one for OCSP answers.

    Source: RFC 6960, 4.2.2.2.
    """
    usages = certificate.extended_key_usage_value
    return usages is not None and "ocsp_signing" in usages.native


def _moments(data: Data) -> Iterator[datetime]:
    """Yield when a datum was signed, and of which time it tells.

    Responders that read CRLs tell of the CRL's time, and may have got their own
    certificate after it.
    """
    if isinstance(data, OCSPContainer):
        basic = data.extract_basic_ocsp_response()
        if basic is not None:
            yield basic["tbs_response_data"]["produced_at"].native
    if data.issuance_date is not None:
        yield data.issuance_date


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
