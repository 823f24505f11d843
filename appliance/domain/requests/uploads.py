"""Documents that an integrator's backend uploads, to be named later."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from appliance.domain.ids import IntegratorId, UploadId
from appliance.domain.requests.intake import StoredDocument

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
    repairs: bool | None = None
    """As of its order; None for those of before version 0006 of the tables."""

    def facts(self) -> dict[str, object]:
        """What the audit keeps of it."""
        return {"upload": self.id, "documentSha256": self.document.sha256}

    def is_of(self, name: str, sha256: str, *, repairs: bool) -> bool:
        """Whether it came as that file, by such an order.

        Args:
            name: of the file, in NFC.
            sha256: of its bytes as they came, hex.
            repairs: as of the order.
        """
        came = self.document.original_sha256 or self.document.sha256
        # Where it was not noted: no copy was made for whoever wants none.
        asked = self.repairs
        if asked is None:
            asked = repairs or self.document.repair is not None
        return (self.name, asked, came) == (name, repairs, sha256)
