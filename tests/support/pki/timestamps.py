"""What every timestamping authority must do, and openssl's word on it."""

import hashlib
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from asn1crypto import cms, tsp
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.ports import TimestampAuthority

DATA: Final = b"what was there at that time"


@dataclass(frozen=True, slots=True)
class Trusted:
    """Who is believed, and when."""

    root: x509.Certificate
    issuing: x509.Certificate
    at: datetime


def imprint(digest: DigestAlgorithm = DigestAlgorithm.SHA256) -> bytes:
    """Digest of `DATA`."""
    return hashlib.new(digest.value, DATA).digest()


def signed(token: bytes) -> cms.SignedData:
    """What a token holds."""
    return cms.ContentInfo.load(token, strict=True)["content"]


def info(token: bytes) -> tsp.TSTInfo:
    """What a token says."""
    return signed(token)["encap_content_info"]["content"].parsed


def openssl(*words: str | Path) -> str:
    """What `openssl ts` says; it must end well."""
    done = subprocess.run(
        ["openssl", "ts", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def trusting(trusted: Trusted, folder: Path) -> tuple[str | Path, ...]:
    """Options of `openssl ts -verify` for who is believed."""
    for name, one in (("root", trusted.root), ("ca", trusted.issuing)):
        (folder / f"{name}.pem").write_bytes(one.public_bytes(Encoding.PEM))
    return (
        *("-CAfile", folder / "root.pem", "-untrusted", folder / "ca.pem"),
        *("-attime", str(int(trusted.at.timestamp()))),
    )


async def check_authority(
    authority: TimestampAuthority, trusted: Trusted, folder: Path
) -> None:
    """The contract of `TimestampAuthority`: over each digest, to the octet."""
    (folder / "data").write_bytes(DATA)
    for digest in DigestAlgorithm:
        token = await authority.stamp(imprint(digest), digest)

        told = info(token)["message_imprint"]
        assert told["hash_algorithm"]["algorithm"].native == digest.value
        assert told["hashed_message"].native == imprint(digest)
        (folder / "token").write_bytes(token)
        words = ("-verify", "-token_in", "-in", folder / "token")
        against = ("-data", folder / "data")
        assert "OK" in openssl(*words, *against, *trusting(trusted, folder))
