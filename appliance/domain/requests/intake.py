"""Signature requests, documents and signed documents."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from appliance.domain.documents.inspected import CameDocument, Inspection, Repair
from appliance.domain.ids import (
    DocumentId,
    IntegratorId,
    PersonId,
    RequestBatchId,
)
from appliance.domain.requests.levels import NO_WISHES, ProfileWishes
from appliance.domain.requests.preset import SignaturePreset

FRAME_ORIGIN: Final = "sesion"
"""`origin` of the requests that a session of the frame made."""


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document of an integrator that was inspected and kept."""

    id: DocumentId
    integrator: IntegratorId
    sha256: str
    inspection: Inspection
    repair: Repair | None = None
    """Where it comes from, when it is the repaired copy of a damaged file."""

    @property
    def original_sha256(self) -> str:
        """Of the damaged file, hex; empty for a document that came as it is."""
        return "" if self.repair is None else self.repair.original_sha256

    @property
    def came(self) -> CameDocument:
        """Its id, and what it came as."""
        return CameDocument(self.id, self.original_sha256)

    def facts(self) -> dict[str, object]:
        """What the audit keeps of it."""
        facts: dict[str, object] = {
            "documentSha256": self.sha256,
            "pages": len(self.inspection.pages),
            "findings": [kind.value for kind in self.inspection.findings],
        }
        if self.repair is not None:
            facts["originalSha256"] = self.repair.original_sha256
            facts["damage"] = [each.value for each in self.repair.damage]
        return facts


@dataclass(frozen=True, slots=True)
class NewRequest:
    """A signature request to be recorded."""

    person: PersonId
    integrator: IntegratorId
    document: DocumentId
    name: str
    origin: str
    """Where it came from: `operador`, `integrador`, or `FRAME_ORIGIN`."""
    created: datetime
    expires: datetime | None
    wishes: ProfileWishes = NO_WISHES
    named_by: str | None = None
    """How the integrator's backend named the person, where it did."""
    preset: SignaturePreset | None = None
    """Look and place of the signature, settled; None: the signer's alone."""
    batch: RequestBatchId | None = None
    """What it is asked for with, where it is one of many."""
    turn: int | None = None
    """As of `RequestView`."""
    original_sha256: str = ""
    """Original of the document, as `StoredDocument.original_sha256`."""
