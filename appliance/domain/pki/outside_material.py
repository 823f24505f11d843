"""What a signing worker needs of servers outside: timestamps and revocation status.

The signing worker has no network. It states what it needs as `WantedMaterial`. The
chores worker fetches it and stores it beside that statement. The signing worker checks
it, puts the document together and publishes it.

Source: design §1; docs/signing.md "Material from outside".
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.text.canonical_json import canonical_json


class JobKind(StrEnum):
    """Purpose of a job's material."""

    ACTIVATION = "activation"
    UPKEEP = "upkeep"
    """A published document that is kept at its level."""


class MaterialKind(StrEnum):
    """Kind of the material."""

    TIMESTAMP = "timestamp"
    """A token of an authority outside."""
    STATUS = "status"
    """An OCSP answer or a CRL of a CA outside, about one certificate."""


class MaterialState(StrEnum):
    """Progress."""

    WANTED = "wanted"
    THERE = "there"
    FAILED = "failed"
    """Every server was asked, and none gave it."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A document timestamp that lacks its token alone, and what stands before it.

    The token is over these bytes: another try would make others.
    """

    base: str
    """Names the bytes that it is appended to, as hexadecimal SHA-256."""
    is_archive: bool
    """True for a timestamp over the validation data; False for one in the place of a
    signature's own."""
    appended: bytes = field(repr=False)
    """Revisions between the base and the timestamp's own."""
    increment: bytes = field(repr=False)
    """The timestamp's revision, with zeros in Contents."""
    contents_at: int
    contents_length: int
    imprint: bytes
    digest: DigestAlgorithm


@dataclass(frozen=True, slots=True)
class WantedMaterial:
    """One piece that a signing worker lacks."""

    kind: MaterialKind
    subject: Mapping[str, Any]
    """The question, in JSON's values: it names the piece within its job."""
    code: ErrorCode
    """Why nothing is published as long as it is missing."""
    is_required: bool = True
    """False where one try is enough: the document then does without it."""
    nonce: int | None = None
    """Of a timestamp: repeated by the token, so that no older one passes for it."""
    draft: Draft | None = field(default=None, repr=False)
    again: bool = False
    """True where what was delivered cannot be used, and is fetched again."""

    @property
    def key(self) -> str:
        """Name of the piece within its job."""
        return material_key(self.kind, self.subject)


@dataclass(frozen=True, slots=True)
class Material:
    """A piece as it stands in the record."""

    key: str
    kind: MaterialKind
    subject: Mapping[str, Any]
    state: MaterialState
    is_required: bool
    nonce: int | None
    token: bytes | None = field(repr=False)
    """Of a timestamp that is there, as it was delivered: nothing of it is believed."""
    reason: str
    wanted_at: datetime


@dataclass(frozen=True, slots=True)
class JobClaim:
    """Material that one chores worker is to fetch."""

    id: str
    """Of the activation, or the upkeep."""
    kind: JobKind
    fence: int
    tries: int
    """Claims since something of it was last had."""
    wanted: Sequence[Material]


def material_key(kind: MaterialKind, subject: Mapping[str, Any]) -> str:
    """Name a piece within its job.

    Args:
        kind: of the piece.
        subject: as `WantedMaterial.subject`.
    """
    content = canonical_json({"kind": kind.value, "subject": dict(subject)})
    return hashlib.sha256(content).hexdigest()


def timestamp_subject(
    names: Sequence[str],
    imprint: bytes,
    digest: DigestAlgorithm,
    *,
    is_proven: bool,
) -> dict[str, Any]:
    """The question for a timestamp.

    Args:
        names: of the authorities, in the order to ask them.
        imprint: digest of what is stamped.
        digest: algorithm of the imprint.
        is_proven: whether the status of the authority's certificate is needed too.
    """
    return {
        "tsa": list(names),
        "digest": digest.value,
        "imprint": imprint.hex(),
        "proven": is_proven,
    }


def status_subject(
    certificate: bytes, issuer: bytes, since: datetime | None
) -> dict[str, Any]:
    """The question for a certificate's status.

    Args:
        certificate: DER.
        issuer: of it, DER.
        since: an older answer does only where no younger one can be had.
    """
    return {
        "certificate": base64.b64encode(certificate).decode("ascii"),
        "issuer": base64.b64encode(issuer).decode("ascii"),
        "since": None if since is None else since.isoformat(),
    }


class MissingMaterialError(ApplianceError):
    """Pieces that only a role with a network can have.

    Args:
        wanted: the pieces, one at least.
    """

    def __init__(self, wanted: Iterable[WantedMaterial]) -> None:
        self.wanted = tuple({each.key: each for each in wanted}.values())
        super().__init__(self.wanted[0].code)

    @property
    def reason(self) -> str:
        """The reason, for logs."""
        return "delivered material is not usable" if self.is_refused else "wanted"

    @property
    def is_refused(self) -> bool:
        """True where each piece was delivered, and cannot be used."""
        return all(each.again for each in self.wanted)
