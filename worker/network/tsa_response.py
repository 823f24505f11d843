"""Whether the answer of an outside timestamping authority is good.

An answer is of a stranger on the network: nothing of it is believed before all of
it was checked, and what is not exactly right is refused.

Source: RFC 3161, 2.2, 2.3 and 2.4.2; RFC 5816; RFC 5652, 5; RFC 5280, 6.1.
"""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final

from asn1crypto import cms, core, tsp
from asn1crypto import x509 as asn1
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.x509.oid import ExtendedKeyUsageOID

from appliance.domain.errors import ApplianceError
from appliance.domain.keys.hsm_keys import DigestAlgorithm, SignatureScheme
from appliance.domain.pki.timestamps import TimestampQuestion
from appliance.pki.validation.certificate_rules import (
    CERTIFICATES_AT_MOST,
    check_algorithm,
    check_dates,
    check_extensions,
    check_is_ca,
    extension,
    is_signed_by,
)
from appliance.pki.validation.path_validation import check_path_lengths
from worker.pades.algorithms import SignatureMethod

DRIFT: Final = timedelta(minutes=1)
"""How far an authority's time may be from ours, the way there and back included."""
_SCHEMES: Final = {
    "rsassa_pkcs1v15": SignatureScheme.RSA_PKCS1,
    "rsassa_pss": SignatureScheme.RSA_PSS,
    "ecdsa": SignatureScheme.ECDSA,
}
_GRANTED: Final = frozenset({"granted", "granted_with_mods"})
_SET: Final = b"\x31"
_STUMBLES: Final = (
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    OverflowError,
    RecursionError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
)
"""What asn1crypto and pyca raise on octets that are no such thing."""


class BadTimestampError(Exception):
    """An answer that must not be used; the text says why, for operators."""


def checked_token(
    answer: bytes,
    question: TimestampQuestion,
    policy: str | None,
    roots: Sequence[bytes],
    now: datetime,
) -> bytes:
    """The token of an answer, once all of it was found good.

    Args:
        answer: TimeStampResp, or anything.
        question: what was asked; with a nonce, and for certificates.
        policy: that was asked for, if one was.
        roots: that are trusted for timestamps, DER.
        now: aware.

    Returns:
        TimeStampToken, DER.

    Raises:
        BadTimestampError: it is not good.
    """
    with _refusing():
        token = _granted(answer)
    check_token(token, question, {policy}, roots, (now, now))
    return token


def check_token(
    token: bytes,
    question: TimestampQuestion,
    policies: Collection[str | None],
    roots: Sequence[bytes],
    made: tuple[datetime, datetime],
) -> None:
    """Find a token good, or refuse it.

    Args:
        token: TimeStampToken, DER, or anything.
        question: what was asked; with a nonce, and for certificates.
        policies: that may have been asked for; None among them: any.
        roots: that are trusted for timestamps, DER.
        made: when the authority was asked, at the earliest and at the latest; the
            certificates must be good at the latter.

    Raises:
        BadTimestampError: it is not good.
    """
    with _refusing():
        signed, info = _opened(token)
        _check_info(info, question, policies, made)
        carried = _certificates(signed)
        signer = _signer(signed, carried)
        _check_signature(signed, signer)
        _check_path(_path(signer, carried, roots), made[1])


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn whatever wrong octets raise into a refusal.

    Raises:
        BadTimestampError: the octets are wrong.
    """
    try:
        yield
    except ApplianceError as exc:
        raise BadTimestampError(str(exc)) from exc
    except _STUMBLES as exc:
        msg = f"it is malformed ({type(exc).__name__})"
        raise BadTimestampError(msg) from exc


def _refuse_unless(good: object, why: str) -> None:
    """Refuse an answer in which something is not so.

    Raises:
        BadTimestampError: it is not.
    """
    if not good:
        raise BadTimestampError(why)


def _granted(answer: bytes) -> bytes:
    """The token of an answer whose status is good."""
    fields = core.Sequence.load(answer, strict=True)
    # Not by asn1crypto's TimeStampResp, which knows none without a token.
    status = tsp.PKIStatusInfo.load(fields[0].dump())
    if status["status"].native not in _GRANTED:
        reasons = ", ".join(sorted(status["fail_info"].native or ())) or "no reason"
        msg = f"it was refused: {status['status'].native} ({reasons})"
        raise BadTimestampError(msg)
    return bytes(fields[1].dump())


def _opened(token: bytes) -> tuple[cms.SignedData, tsp.TSTInfo]:
    """The SignedData of a token, and what it says."""
    content = cms.ContentInfo.load(token, strict=True)
    _refuse_unless(content["content_type"].native == "signed_data", "it is not signed")
    signed = content["content"]
    inner = signed["encap_content_info"]
    _refuse_unless(inner["content_type"].native == "tst_info", "it is no timestamp")
    _refuse_unless(len(signed["signer_infos"]) == 1, "it has not one signer")
    return signed, tsp.TSTInfo.load(bytes(inner["content"]), strict=True)


def _check_info(
    info: tsp.TSTInfo,
    question: TimestampQuestion,
    policies: Collection[str | None],
    made: tuple[datetime, datetime],
) -> None:
    told = info.native
    imprint = info["message_imprint"]
    _refuse_unless(told["version"] == "v1", "it is of an unknown version")
    _refuse_unless(
        imprint["hash_algorithm"]["algorithm"].native == question.digest.value
        and bytes(imprint["hashed_message"]) == question.imprint,
        "it is over another imprint",
    )
    _refuse_unless(told["nonce"] == question.nonce, "it has another nonce")
    asked = None in policies or info["policy"].dotted in policies
    _refuse_unless(asked, f"it is of another policy, {info['policy'].dotted}")
    first, last = made
    off = max(first - told["gen_time"], told["gen_time"] - last)
    _refuse_unless(off <= DRIFT, f"its time is {off.total_seconds():.0f} s off")
    critical = [one for one in told["extensions"] or () if one["critical"]]
    _refuse_unless(not critical, "it has a critical extension")


def _certificates(signed: cms.SignedData) -> list[bytes]:
    """The certificates that a token carries, DER."""
    found = [
        bytes(one.chosen.dump())
        for one in signed["certificates"]
        if isinstance(one.chosen, asn1.Certificate)
    ]
    _refuse_unless(
        len(found) <= 2 * CERTIFICATES_AT_MOST, "it carries too many certificates"
    )
    return found


def _signer(signed: cms.SignedData, carried: Sequence[bytes]) -> bytes:
    """The certificate that the signer names, which the signature binds too."""
    named = signed["signer_infos"][0]["sid"].chosen
    for der in carried:
        one = asn1.Certificate.load(der)
        if (
            one.key_identifier == bytes(named)
            if isinstance(named, core.OctetString)
            else one.issuer == named["issuer"]
            and one.serial_number == named["serial_number"].native
        ):
            return der
    msg = "it does not carry its signer's certificate"
    raise BadTimestampError(msg)


def _check_signature(signed: cms.SignedData, certificate: bytes) -> None:
    """Signed attributes over the content, and the value over them.

    Source: RFC 5652, 5.4 and 5.6; RFC 3161, 2.4.2; RFC 5816, 2.2.
    """
    signer = signed["signer_infos"][0]
    attributes = {one["type"].native: one["values"] for one in signer["signed_attrs"]}
    _refuse_unless(
        len(attributes) == len(signer["signed_attrs"])
        and all(len(values) == 1 for values in attributes.values()),
        "it has an attribute twice",
    )
    content = bytes(signed["encap_content_info"]["content"])
    over = DigestAlgorithm(signer["digest_algorithm"]["algorithm"].native)
    _refuse_unless(
        attributes["content_type"][0].native == "tst_info"
        and attributes["message_digest"][0].native
        == hashlib.new(over.value, content).digest(),
        "its attributes are of something else",
    )
    _refuse_unless(_is_bound(attributes, certificate), "it is bound to another signer")
    method = _method(signer)
    # Signed as a SET, carried as [0].
    encoded = _SET + signer["signed_attrs"].dump()[1:]
    value = bytes(signer["signature"])
    right = method.verifies(certificate, method.hash(encoded), value)
    _refuse_unless(right, "its signature is not right")


def _method(signer: cms.SignerInfo) -> SignatureMethod:
    algorithm = signer["signature_algorithm"]
    scheme = _SCHEMES[algorithm.signature_algo]
    # rsaEncryption leaves it to the signer's digest (RFC 5754, 3.2).
    plain = algorithm["algorithm"].native == "rsassa_pkcs1v15"
    name = (
        signer["digest_algorithm"]["algorithm"].native if plain else algorithm.hash_algo
    )
    return SignatureMethod(scheme, DigestAlgorithm(name))


def _is_bound(attributes: dict[str, cms.SetOf], certificate: bytes) -> bool:
    """Whether signing-certificate, of either version, is the signer's."""
    newer = attributes.get("signing_certificate_v2")
    if newer is not None:
        first = newer[0]["certs"][0]
        name = first["hash_algorithm"]["algorithm"].native
        made = hashlib.new(DigestAlgorithm(name).value, certificate).digest()
        return bool(first["cert_hash"].native == made)
    first = attributes["signing_certificate"][0]["certs"][0]
    # SHA-1 binds here what was signed by a stronger digest (RFC 2634, 5.4.1).
    older = hashlib.sha1(certificate).digest()  # noqa: S324
    return bool(first["cert_hash"].native == older)


def _path(
    signer: bytes, carried: Sequence[bytes], roots: Sequence[bytes]
) -> list[x509.Certificate]:
    """From the signer to a trusted root, the root last."""
    anchors = [x509.load_der_x509_certificate(one) for one in roots]
    between = [x509.load_der_x509_certificate(one) for one in carried]
    path = [x509.load_der_x509_certificate(signer)]
    while len(path) < CERTIFICATES_AT_MOST:
        root = _issuer(path[-1], anchors)
        if root is not None:
            return [*path, root]
        above = _issuer(path[-1], [one for one in between if one not in path])
        if above is None:
            break
        path.append(above)
    msg = "its chain ends at no root that is trusted for timestamps"
    raise BadTimestampError(msg)


def _issuer(
    certificate: x509.Certificate, candidates: Sequence[x509.Certificate]
) -> x509.Certificate | None:
    found = (one for one in candidates if is_signed_by(certificate, one))
    return next(found, None)


def _check_path(path: Sequence[x509.Certificate], now: datetime) -> None:
    """Every certificate is good now, and the first one for stamping alone.

    Raises:
        ChainRefusedError: one is not.
        BadTimestampError: the first one is not that of a TSA.

    Source: RFC 3161, 2.3.
    """
    check_path_lengths(path)
    for place, one in enumerate(path):
        check_dates(one, place, now)
        check_algorithm(one, place, anchored=place == len(path) - 1)
        check_extensions(one, place)
    for place, issuer in enumerate(path[1:], start=1):
        check_is_ca(issuer, place)
    _refuse_unless(
        _is_for_timestamps(path[0]), "its certificate is not for timestamps alone"
    )


def _is_for_timestamps(certificate: x509.Certificate) -> bool:
    """Whether a certificate is a TSA's, and nothing else's. Source: RFC 3161, 2.3."""
    constraints = extension(certificate, x509.BasicConstraints)
    usage = extension(certificate, x509.KeyUsage)
    purposes = [
        (one.critical, list(one.value))
        for one in certificate.extensions
        if isinstance(one.value, x509.ExtendedKeyUsage)
    ]
    return (
        purposes == [(True, [ExtendedKeyUsageOID.TIME_STAMPING])]
        and not (constraints and constraints.ca)
        and (usage is None or usage.digital_signature or usage.content_commitment)
    )
