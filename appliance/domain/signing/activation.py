"""Activations, and what seals and envelopes are bound to, as canonical bytes.

Both ends rebuild these from what stands in the record: the front when it seals,
the worker when it opens. A row that was altered in between gives other bytes,
and what was sealed does not open.

Source: design §4 "Activation keys"; RFC 8785.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from operator import attrgetter
from typing import Final

from appliance.domain.appearance.details import PLAIN, StampDetails
from appliance.domain.ids import (
    ActivationId,
    CredentialId,
    PersonId,
    RequestId,
    TaskId,
)
from appliance.domain.keys.hsm_keys import KeyAlgorithm
from appliance.domain.signing_command import SignParameters
from appliance.domain.text.canonical_json import canonical_json
from appliance.domain.vocab import ActivationState, IntentState, ItemState, VouchedBy

_FIRST_OF_MINUTES: Final = 10_000_000
"""Lowest number of an epoch of 60 seconds: those of 600 come to it in 2160."""
MAX_HOSTS: Final = 8
"""Most hosts that one activation is sealed to."""
MOST_DOCUMENTS: Final = 64
"""Most documents of one activation that a command makes."""
_WORTH_SHARING: Final = 16
"""Documents that two workers sign sooner than one."""
SIGNING_PASSWORD: Final = "sign-pwd"  # noqa: S105 (a word, no secret)
"""The factor that each signature adds to those of the sign-in."""


def activation_count(documents: int) -> int:
    """How many activations a command makes for so many documents.

    Of an even number each of two workers has as many: neither waits while the other
    signs the last one. Few, since each costs what some ten documents do.

    Args:
        documents: of the command.
    """
    if documents < _WORTH_SHARING:
        return min(1, documents)
    return 2 * -(-documents // (2 * MOST_DOCUMENTS))


class ActivationFormat(IntEnum):
    """Format of a consent: its bound values, and the numbering of activation keys.

    A seal is of the format of the key that it was sealed to, and the number of that
    key's epoch tells which: no row says it. The oldest format that counts on a machine
    stands in a file there (`appliance.keys.activation_format`).
    """

    FIRST = 1
    """Format of releases up to 0.1; an epoch lasts ten minutes."""
    WHOLE = 2
    """Epochs of one minute."""

    @property
    def epoch_s(self) -> int:
        """Duration for which an activation key is the newest of its host, seconds."""
        return 600 if self is ActivationFormat.FIRST else 60

    @property
    def epochs_kept(self) -> int:
        """Epochs whose private halves are kept, the present one among them."""
        return 2 if self is ActivationFormat.FIRST else 5

    @property
    def first_epoch(self) -> int:
        """Lowest number of an epoch of this format."""
        return 0 if self is ActivationFormat.FIRST else _FIRST_OF_MINUTES

    @property
    def statement(self) -> bytes:
        """Domain of the statement about an activation key."""
        return f"rubrica/activation-key/{self.value}\0".encode()

    def epoch_at(self, at: datetime) -> int:
        """Number of the epoch that a time falls into."""
        return int(at.timestamp()) // self.epoch_s

    def oldest_kept(self, at: datetime) -> int:
        """Number of the oldest epoch whose private half is kept at a time."""
        return self.epoch_at(at) - self.epochs_kept + 1


def format_of(epoch: int) -> ActivationFormat:
    """Format of an activation key, and of what was sealed to it.

    Args:
        epoch: of the key.
    """
    if epoch < _FIRST_OF_MINUTES:
        return ActivationFormat.FIRST
    return ActivationFormat.WHOLE


def epoch_start(epoch: int) -> datetime:
    """Beginning of an epoch."""
    return datetime.fromtimestamp(epoch * format_of(epoch).epoch_s, UTC)


@dataclass(frozen=True, slots=True)
class SignatureValue:
    """What one use of the key yielded, and what it is put into."""

    increment: bytes = field(repr=False)
    """What is appended to the document, its Contents still empty."""
    contents_at: int
    """Offset of Contents' hexadecimal digits in the increment, in bytes."""
    contents_length: int
    """How many digits there are."""
    signed_attributes: bytes = field(repr=False)
    """DER of SET OF, as it was hashed."""
    value: bytes = field(repr=False)
    """RSA's octets, or DER of Ecdsa-Sig-Value."""


@dataclass(frozen=True, slots=True)
class ActivationDocument:
    """One document of an activation, from the consent to its publication."""

    seq: int
    """From 0, in the order of signing."""
    request: RequestId
    document_sha256: str
    params: SignParameters
    params_sha256: str
    state: ItemState = ItemState.WAITING
    details: StampDetails = PLAIN
    """What its stamp shows besides."""
    code: str | None = None
    """Verification code in its QR code."""
    digest: str = ""
    """Hex; what the key is asked to sign, once that is prepared."""
    signature: SignatureValue | None = None
    """Stored as long as it is needed to publish the document."""


@dataclass(frozen=True, slots=True)
class Activation:
    """A person's consent to sign exactly these documents with these parameters."""

    id: ActivationId
    person: PersonId
    credential: CredentialId
    factors: tuple[str, ...]
    created: datetime
    claim_by: datetime
    """Until when a worker may take it."""
    documents: tuple[ActivationDocument, ...]
    profile: dict[str, object] | None = field(default=None, kw_only=True)
    """The installation's profile by the settings of the front, as
    `SignatureProfile.to_json` has it; None: a version before did not record it. It
    explains a refusal: what a signature is bound to is the resolved profile."""

    @property
    def is_in_order(self) -> bool:
        """True if the documents are numbered as every front does.

        A seal is bound to their order, and not to their numbers. By these numbers a
        host remembers for which documents the key was used.
        """
        return [document.seq for document in self.documents] == list(
            range(len(self.documents))
        )


def activation_data(activation: Activation, key_version: int) -> bytes:
    """What the unlock key is bound to: the `info` of its HPKE envelopes.

    SHA-256 of the RFC 8785 JSON, 32 bytes. The front seals with what it is about to
    record, a worker opens with what it claimed (a `Claim` is an `Activation`).

    Args:
        activation: all that the person consented to.
        key_version: of the credential's key.

    Source: design §4 "Activation keys"; RFC 9180, 5.1; EN 419 241-1 (SAD).
    """
    return _info(
        {
            "activation": activation.id,
            "person": activation.person,
            "credential": activation.credential,
            "keyVersion": key_version,
            "items": [
                {
                    "request": document.request,
                    "documentSha256": document.document_sha256,
                    "parameters": document.params.to_wire(),
                    # Left out of a plain one, whose canonical form is older.
                    **(
                        {}
                        if document.details == PLAIN
                        else {"stamp": document.details.to_json()}
                    ),
                }
                for document in activation.documents
            ],
            "factors": list(activation.factors),
            "created": _instant(activation.created),
            "claimBy": _instant(activation.claim_by),
        }
    )


@dataclass(frozen=True, slots=True)
class IssueBinding:
    """Whose key is to be made, of which kind, and who answers for the person."""

    task: TaskId
    person: PersonId
    credential: CredentialId
    algorithm: KeyAlgorithm
    vouched_by: VouchedBy

    def info(self) -> bytes:
        """The `info` of the seal: SHA-256 of the RFC 8785 JSON, 32 bytes."""
        return _info(
            {
                "task": self.task,
                "person": self.person,
                "credential": self.credential,
                "algorithm": self.algorithm.value,
                "vouchedBy": self.vouched_by.value,
            }
        )


@dataclass(frozen=True, slots=True)
class CsrBinding:
    """Whose key is to sign a certificate signing request."""

    task: TaskId
    person: PersonId
    credential: CredentialId
    key_version: int

    def info(self) -> bytes:
        """The `info` of the seal: SHA-256 of the RFC 8785 JSON, 32 bytes."""
        return _info(
            {
                "use": "csr",
                "task": self.task,
                "person": self.person,
                "credential": self.credential,
                "keyVersion": self.key_version,
            }
        )


def key_statement(installation: str, host: str, epoch: int, public: bytes) -> bytes:
    """What the HSM's worker identity signs of an activation key.

    Args:
        installation: the setting of that name.
        host: whose signing workers hold the private half.
        epoch: for which it was made.
        public: the X25519 public key, 32 bytes.
    """
    return format_of(epoch).statement + canonical_json(
        {
            "installation": installation,
            "host": host,
            "epoch": epoch,
            "public": public.hex(),
        }
    )


@dataclass(frozen=True, slots=True)
class ActivationKey:
    """The published half of a host's key for one epoch."""

    host: str
    epoch: int
    public: bytes
    """X25519, 32 bytes."""
    identity: str
    """SHA-256, in hex, of the SubjectPublicKeyInfo of the identity that signed."""
    signature: bytes = field(repr=False)
    made: datetime
    host_signature: bytes | None = field(default=None, repr=False)
    """Signature by the host's own key; None in format 1."""

    @property
    def format(self) -> ActivationFormat:
        """Format of what is sealed to it."""
        return format_of(self.epoch)


@dataclass(frozen=True, slots=True)
class Seal:
    """An unlock key, sealed to one host's key of one epoch."""

    host: str
    epoch: int
    sealed: bytes = field(repr=False)
    """HPKE: encapsulated key and ciphertext."""

    @property
    def format(self) -> ActivationFormat:
        """Format of what it is bound to."""
        return format_of(self.epoch)


def _instant(at: datetime) -> str:
    """A time as both databases keep it: UTC, to the microsecond."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _info(fields: dict[str, object]) -> bytes:
    return hashlib.sha256(canonical_json(fields)).digest()


def newest_of_each(
    keys: Sequence[ActivationKey],
    hosts: Sequence[str],
    now: datetime,
    oldest: ActivationFormat = ActivationFormat.FIRST,
) -> list[ActivationKey]:
    """The key of each host that is to be sealed to now, by host.

    A key of a later format comes before any of an earlier one, and of one format that
    of the present epoch: the next epoch's is published ahead, and its private half
    lives longer. The next one is for a front whose clock is ahead, the last one for a
    front whose clock is behind. An epoch before the last or after the next is none: its
    private half is gone or about to be, or somebody's clock is wrong by more than an
    epoch.

    Args:
        keys: published ones, of any epochs.
        hosts: those that may be sealed to; of more than `MAX_HOSTS` the first ones.
        now: the time.
        oldest: format that counts.
    """
    newest: dict[str, ActivationKey] = {}
    # The last one that fits counts: of each format the present epoch's, if it is there.
    order = (-1, 1, 0)
    for key in sorted(keys, key=attrgetter("epoch")):
        ahead = key.epoch - key.format.epoch_at(now)
        known = newest.get(key.host)
        if key.format < oldest or ahead not in order:
            continue
        if known is not None and known.format is key.format:
            before = known.epoch - known.format.epoch_at(now)
            if order.index(before) > order.index(ahead):
                continue
        newest[key.host] = key
    chosen = [newest[host] for host in sorted(set(hosts)) if host in newest]
    return chosen[:MAX_HOSTS]


@dataclass(frozen=True, slots=True)
class Claim(Activation):
    """An activation in the hands of one worker."""

    state: ActivationState
    fence: int
    """Number of this claim; also the number of the attempt."""
    key_until: datetime
    tries: int = 1
    """Claims since a document last came to a result, this one among them."""
    seal: Seal | None = field(repr=False, default=None)
    """What this host may open; None once no key is needed any more."""


@dataclass(frozen=True, slots=True)
class LeasePolicy:
    """Whose claims they are, and how long a claim and its phases last."""

    host: str
    """Whose seals can be opened: without one only what needs no key is taken."""
    lease: timedelta
    key: timedelta
    """For the key phase, plus a second a document."""
    finish: timedelta
    attempts: int
    """Claims without a result after which an activation is given up as poisonous;
    in the finish phase it is then taken only after a lease's time of rest."""
    suspect: int
    """Claims without a result after which it may be what ends its workers."""


@dataclass(frozen=True, slots=True)
class Overdue:
    """An activation whose time, or whose attempts, are over."""

    id: ActivationId
    state: ActivationState
    tries: int
    """Claims since a document last came to a result."""
    documents: tuple[ActivationDocument, ...]
    reason: str = ""
    """What it waited for at last, or nothing."""


@dataclass(frozen=True, slots=True)
class CodedItem:
    """A published signature, found by its verification code."""

    request: RequestId
    person: PersonId
    signed_at: datetime
    """When its key was used."""
    field: str | None = None
    """Full name of the document's own field that it is in; None: a new one."""


@dataclass(frozen=True, slots=True)
class IntentRow:
    """One intended use of a key."""

    activation: ActivationId
    item: int
    attempt: int
    digest: str
    state: IntentState
