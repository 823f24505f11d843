"""TSTInfo and TimeStampToken from DER parts, against asn1crypto's own."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from asn1crypto import algos, core, tsp

from appliance.domain.keys.hsm_keys import DigestAlgorithm, SignatureScheme
from appliance.domain.pki.timestamps import TIMESTAMP_POLICY, TimestampQuestion
from tests.support.factories.fakes import NOON
from tests.support.pki.outside_ca import OutsideCa, der, ec_key, spki_of
from tests.support.pki.timestamps import imprint, info, signed
from worker.pades.algorithms import SignatureMethod
from worker.pades.cms import signed_attributes
from worker.pki.tsp_encoding import token, token_parts, tst_info

CA = OutsideCa(NOON)
CERTIFICATE = der(CA.certify(spki_of(ec_key()), "20267565393"))
METHOD = SignatureMethod(SignatureScheme.ECDSA, DigestAlgorithm.SHA256)
NONCES = [None, 0, 1, 127, 128, 255, 256, 2**63, 2**64 - 1, 2**159, -1, -128, -129]


def asked(**changes: Any) -> TimestampQuestion:
    """A question, but for `changes`."""
    digest = changes.get("digest", DigestAlgorithm.SHA256)
    given = {"imprint": imprint(digest), "digest": digest, **changes}
    return TimestampQuestion(**given)


def by_asn1crypto(question: TimestampQuestion, serial: int, at: datetime) -> bytes:
    """The same, as another encoder has it."""
    algorithm = {
        "algorithm": question.digest.value,
        "parameters": core.Null() if question.null_parameters else core.Void(),
    }
    fields: dict[str, Any] = {
        "version": "v1",
        "policy": TIMESTAMP_POLICY,
        "message_imprint": {
            "hash_algorithm": algos.DigestAlgorithm(algorithm),
            "hashed_message": question.imprint,
        },
        "serial_number": serial,
        "gen_time": at,
        "accuracy": {"seconds": 1},
    }
    if question.nonce is not None:
        fields["nonce"] = question.nonce
    return bytes(tsp.TSTInfo(fields).dump())


@pytest.mark.parametrize("nonce", NONCES)
@pytest.mark.parametrize("digest", list(DigestAlgorithm))
def test_info_is_what_asn1crypto_encodes(
    nonce: int | None, digest: DigestAlgorithm
) -> None:
    """Numbers of every length and sign, each digest."""
    question = asked(nonce=nonce, digest=digest, null_parameters=True)

    assert tst_info(question, 2**127, NOON, 1) == by_asn1crypto(question, 2**127, NOON)


@pytest.mark.parametrize(
    ("microsecond", "fraction"),
    [(0, ""), (100_000, ".1"), (120_000, ".12"), (123_999, ".123"), (999, "")],
)
def test_time_is_in_utc_without_final_zeros(microsecond: int, fraction: str) -> None:
    """DER: `Z`, and no digit that says nothing. Source: X.690, 11.7."""
    west = timezone(timedelta(hours=-3))
    at = datetime(2026, 12, 31, 23, 0, 1, microsecond, tzinfo=west)

    told = tsp.TSTInfo.load(tst_info(asked(), 1, at, 60))

    assert told["gen_time"].contents.decode() == f"20270101020001{fraction}Z"
    assert told["gen_time"].native.replace(microsecond=0) == at.replace(
        microsecond=0
    ).astimezone(UTC)
    assert told["accuracy"]["seconds"].native == 60


@pytest.mark.parametrize("certificates", [True, False])
def test_token_is_what_the_rfcs_say(certificates: bool) -> None:
    """Version 3 around TSTInfo, three attributes, ESSCertIDv2, its certificates."""
    parts = token_parts(CERTIFICATE, (der(CA.issuing),), METHOD)
    content = tst_info(asked(nonce=5), 7, NOON, 1)
    attributes = signed_attributes(parts, METHOD.hash(content))

    made = token(parts, content, attributes, b"value", certificates=certificates)

    held = signed(made)
    (signer,) = held["signer_infos"]
    named = {one["type"].native: one["values"][0] for one in signer["signed_attrs"]}
    (bound,) = named["signing_certificate_v2"]["certs"]
    assert info(made).dump() == content
    assert (held["version"].native, signer["version"].native) == ("v3", "v1")
    assert held["encap_content_info"]["content_type"].native == "tst_info"
    assert len(held["certificates"]) == (2 if certificates else 0)
    assert set(named) == {"content_type", "message_digest", "signing_certificate_v2"}
    assert named["content_type"].native == "tst_info"
    assert named["message_digest"].native == METHOD.hash(content)
    assert bound["cert_hash"].native == METHOD.hash(CERTIFICATE)
    assert signer["signature"].native == b"value"
    assert held.dump(force=True) == held.dump()
