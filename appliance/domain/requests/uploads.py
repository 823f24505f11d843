"""Documents that an integrator's backend uploads, to be named later."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from appliance.domain.ids import IntegratorId, UploadId
from appliance.domain.requests.new_request import StoredDocument

DEFAULT_NAME: Final = "documento.pdf"
"""Of a document that came without a name."""


@dataclass(frozen=True, slots=True)
class UploadOrder:
    """A document that comes, and from whom."""

    integrator: IntegratorId
    api_key: str
    """Id of the key that it came with."""
    actor: str
    name: str
    """Of its file, as it was given."""
    idempotency_key: str | None = None
    repairs: bool = True
    """Whether a copy may be written anew and kept beside it, to be signed."""


@dataclass(frozen=True, slots=True)
class UploadedDocument:
    """A document of an integrator under an id of its own, for a time."""

    id: UploadId
    document: StoredDocument
    name: str
    created: datetime
    until: datetime
    """From then on it can be named no more."""

    def facts(self) -> dict[str, object]:
        """What the audit keeps of it."""
        return {"upload": self.id, "documentSha256": self.document.sha256}

    def is_of(self, name: str, sha256: str) -> bool:
        """Whether it came as that file.

        Args:
            name: of the file, in NFC.
            sha256: of its bytes as they came, hex.
        """
        repair = self.document.repair
        came = self.document.sha256 if repair is None else repair.original_sha256
        return self.name == name and came == sha256
