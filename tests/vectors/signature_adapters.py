"""The product as vectors of signatures see it: CMS, PDF, timestamps, certificates.

As `tests.vectors.adapters`, for what the signing engine and the internal CA write.
Keys and certificates stand in `keys.json`; RSA by PKCS#1 v1.5 signs the same alike.
"""

import hashlib
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding

from appliance.domain.appearance.details import StampDetails
from appliance.domain.appearance.stamp import lay_out
from appliance.domain.appearance.text import StampSigner
from appliance.domain.documents.inspected import Inspection, PageBox
from appliance.domain.keys.hsm_keys import DigestAlgorithm, SignatureScheme
from appliance.domain.pki.certificates import AnswerDraft, CrlDraft, RevokedEntry
from appliance.domain.pki.timestamps import TimestampQuestion
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import (
    CertificateState,
    Restriction,
    RevocationReason,
    VouchedBy,
)
from tests.vectors.adapters import at, raw
from tests.vectors.kept import FOLDER, Given, read
from worker.pades import SignatureMethod, SignaturePlan, assemble, check, prepare
from worker.pades.appearance.fonts import StampFonts, load_fonts
from worker.pades.cms import SignerParts, signed_attributes, signed_data, signer_parts
from worker.pki import certificate_profiles
from worker.pki.csr import _body
from worker.pki.publisher import _crl_builder, _status
from worker.pki.tsp_encoding import TST_INFO, token, token_parts, tst_info

KEYS: Final = FOLDER / "keys.json"
_FONTS: Final = Path("/usr/share/fonts/truetype/liberation2")
_HASHES: Final = {"sha256": hashes.SHA256(), "sha512": hashes.SHA512()}


@cache
def _keys() -> tuple[rsa.RSAPrivateKey, bytes, tuple[bytes, ...]]:
    """The signer's key, certificate and chain."""
    kept = read(KEYS)
    key = serialization.load_der_private_key(raw(kept["key"]), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key, raw(kept["certificate"]), tuple(raw(each) for each in kept["chain"])


@cache
def _fonts() -> StampFonts:
    return load_fonts(_FONTS)


def _method(given: Given) -> SignatureMethod:
    return SignatureMethod(SignatureScheme.RSA_PKCS1, DigestAlgorithm(given["digest"]))


def _value(digest: bytes, method: SignatureMethod) -> bytes:
    """As the HSM signs."""
    hashed = utils.Prehashed(_HASHES[method.digest.value])
    return _keys()[0].sign(digest, padding.PKCS1v15(), hashed)


def cms(given: Given) -> dict[str, str]:
    """What is signed of a document, and the CMS around it."""
    _, certificate, chain = _keys()
    method = _method(given)
    parts = signer_parts(certificate, chain, method)
    attributes = signed_attributes(parts, method.hash(raw(given["content"])))
    value = _value(method.hash(attributes), method)
    stamp = raw(given["token"]) if given["token"] else None
    whole = signed_data(parts, attributes, value, stamp)
    return {"attributes": attributes.hex(), "cms": whole.hex()}


def timestamp(given: Given) -> dict[str, str]:
    """A TSTInfo, and the token around it."""
    _, certificate, chain = _keys()
    method = _method(given)
    info = tst_info(
        TimestampQuestion(
            raw(given["imprint"]),
            method.digest,
            given["nonce"],
            null_parameters=given["null"],
        ),
        given["serial"],
        at(given["at"]),
        given["accuracy"],
    )
    parts: SignerParts = token_parts(certificate, chain, method)
    attributes = signed_attributes(parts, method.hash(info))
    value = _value(method.hash(attributes), method)
    made = token(parts, info, attributes, value, certificates=given["certificates"])
    return {"content": TST_INFO, "info": info.hex(), "token": made.hex()}


def signed_pdf(given: Given) -> dict[str, Any]:
    """The revision that a signature adds; of one that is seen its hash alone."""
    _, certificate, chain = _keys()
    original, method = given["pdf"].encode("latin-1"), _method(given)
    params = SignParameters.from_wire(given["parameters"])
    signed_at, inspection = (
        at(given["at"]),
        Inspection(len(original), (PageBox(0, 0, 595, 842, 0),), (), 0, None),
    )
    layout = lay_out(
        params,
        StampSigner(given["name"], given["cuil"], "es"),
        signed_at,
        inspection,
        StampDetails.from_json(given["details"]),
    )
    plan = SignaturePlan(
        given["field"],
        layout,
        Restriction(params.restriction),
        signed_at,
        given["name"],
        certificate,
        chain,
        method,
        reason=params.reason,
        place=params.place,
    )
    made = prepare(original, plan, _fonts() if layout else None)
    increment = assemble(
        made.increment,
        contents_at=made.contents_at,
        contents_length=made.contents_length,
        signed_attributes=made.signed_attributes,
        signature=_value(made.digest, method),
        method=method,
        certificate=certificate,
        chain=chain,
    )
    told: dict[str, Any] = {
        "digest": made.digest.hex(),
        "contents": [made.contents_at, made.contents_length],
    }
    if layout is not None:
        return {**told, "sha256": hashlib.sha256(increment).hexdigest()}
    return {**told, "increment": increment.decode("latin-1")}


def signed_pdf_right(given: Given, written: Any) -> bool:
    """Whether it is a right signature of the original."""
    if "increment" in written:
        increment = written["increment"].encode("latin-1")
        check(given["pdf"].encode("latin-1"), increment, _keys()[1])
    return True


def certificate_fields(given: Given) -> dict[str, Any]:
    """What stands in certificates that the internal CA issues, DER by DER."""
    key, _, (ca_der, *_) = _keys()
    ca = x509.load_der_x509_certificate(ca_der)
    settings = cast("Any", SimpleNamespace(web=SimpleNamespace(base_url=given["url"])))
    public = certificate_profiles.signer_key(
        key.public_key().public_bytes(
            Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    vouched_by = VouchedBy(given["vouchedBy"])
    kinds = {
        "signer": certificate_profiles.signer_extensions(
            settings, ca, public, vouched_by
        ),
        "tsa": certificate_profiles.tsa_extensions(settings, ca, public),
        "responder": certificate_profiles.responder_extensions(ca, public),
    }
    name = certificate_profiles.signer_name(given["name"], given["cuil"])
    return {
        "subject": name.public_bytes().hex(),
        **{
            kind: [
                [one.oid.dotted_string, critical, one.public_bytes().hex()]
                for one, critical in extensions
            ]
            for kind, extensions in kinds.items()
        },
    }


def request_body(given: Given) -> str:
    """What a certificate signing request asks for."""
    key, *_ = _keys()
    spki = key.public_key().public_bytes(
        Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    statement = SimpleNamespace(name=given["name"], cuil=given["cuil"])
    return bytes(_body(cast("Any", statement), spki).dump()).hex()


def revocations(given: Given) -> dict[str, Any]:
    """What is signed of a CRL, and what OCSP answers say."""
    key, certificate, _ = _keys()
    draft = CrlDraft(
        "",
        given["number"],
        tuple(
            RevokedEntry(serial, at(when), RevocationReason(reason))
            for serial, when, reason in given["entries"]
        ),
        at(given["this"]),
        at(given["next"]),
    )
    issuer = x509.load_der_x509_certificate(certificate)
    crl = _crl_builder(draft, issuer).sign(key, hashes.SHA256())
    answers = [
        AnswerDraft(
            serial,
            CertificateState.REVOKED,
            at(when),
            RevocationReason(reason),
            draft.this_update,
            draft.next_update,
        )
        for serial, when, reason in given["entries"]
    ]
    good = AnswerDraft(
        "01",
        CertificateState.VALID,
        None,
        None,
        draft.this_update,
        draft.next_update,
    )
    return {
        "crl": crl.tbs_certlist_bytes.hex(),
        "statuses": [_status(one).dump().hex() for one in (good, *answers)],
    }
