"""Several requests signed by one command: what is asked, and how it stands.

Source: decisions "several at once"; design §3.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from appliance.domain.errors import ApplianceError
from appliance.domain.ids import BatchId, PersonId, RequestBatchId, RequestId
from appliance.domain.requests.request import SignedDocumentView
from appliance.domain.signing_command import GivenParameters, SignParameters
from appliance.domain.text.canonical_json import canonical_json

MOST_REQUESTS: Final = 200
"""Requests that one command may name by number (decisions "several at once")."""


@dataclass(frozen=True, slots=True)
class SignBatch:
    """One call of firmar/lote, parsed."""

    requests: tuple[RequestId, ...]
    """1 to `MOST_REQUESTS`, in the caller's order; one may stand there twice. Those of
    a whole batch, once they are known."""
    given: GivenParameters
    """For every one of them; what it leaves open is each request's preset's to say."""
    password: bytes = field(repr=False)
    """UTF-8 of the NFC form, 8 to 1024 bytes."""
    idempotency_key: str | None = None
    whole: RequestBatchId | None = None
    """The integrator's batch that is to be signed, in place of requests by number."""

    def sha256(self, fingerprints: Mapping[RequestId, str]) -> str:
        """Fingerprint that tells a repeated command from another one.

        SHA-256, in hex, of the RFC 8785 JSON of all fields but `password`.

        Args:
            fingerprints: of the parameters of requests with a preset, which the
                call's own fields do not tell.
        """
        named: dict[str, object] = {"solicitudIds": list(self.requests)}
        if self.whole is not None:
            named = {"loteId": self.whole}
        fields = {**named, **self.given.params.to_wire()}
        if fingerprints:
            told = {str(each): fingerprints[each] for each in sorted(fingerprints)}
            fields["fingerprints"] = told
        return _sha256(fields)

    def id_for(
        self, person: PersonId, fingerprints: Mapping[RequestId, str]
    ) -> BatchId:
        """Name of the batch: the same command of the same person is the same one.

        Args:
            person: who signs.
            fingerprints: as in `sha256`.

        Returns:
            32 hexadecimal digits; it guards nothing.
        """
        sha256 = self.sha256(fingerprints)
        return BatchId(_sha256({"person": person, "batch": sha256})[:32])


@dataclass(frozen=True, slots=True)
class BatchItem:
    """How one request of a batch stands: signed, refused, or going on."""

    request: RequestId
    document: SignedDocumentView | None = None
    problem: ApplianceError | None = None

    @property
    def is_over(self) -> bool:
        """Whether this call changes nothing more about it."""
        return self.document is not None or self.problem is not None


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """How a batch stands."""

    id: BatchId
    items: tuple[BatchItem, ...]
    """In the order of the command; a request that stands there twice is told twice."""

    @property
    def is_over(self) -> bool:
        """Whether every request has its result."""
        return all(item.is_over for item in self.items)


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch as it is kept for whoever asks how it goes on."""

    id: BatchId
    person: PersonId
    requests: tuple[RequestId, ...]
    params: SignParameters
    refused: dict[RequestId, ApplianceError]
    """What was not begun, and why."""
    asked: datetime
    fingerprints: Mapping[RequestId, str] = field(default_factory=dict)
    """Of the parameters of requests with a preset, as they were begun."""

    def fingerprint(self, request: RequestId) -> str:
        """Of the parameters that a request was begun with, hex."""
        return self.fingerprints.get(request) or self.params.sha256(request)


def _sha256(fields: dict[str, object]) -> str:
    return hashlib.sha256(canonical_json(fields)).hexdigest()
