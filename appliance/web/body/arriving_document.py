"""Documents as they arrive: kept out of the heap, so that large ones cost no more."""

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.system.sealed_memory import MemoryWriter, SealedMemory


class ArrivingDocument:
    """Takes a document's bytes as they come, or those of several, one after the other.

    Args:
        limit: most that one may have.

    Raises:
        ApplianceError: `OVERLOADED`: the machine has no room for it.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        try:
            self._memory = MemoryWriter("document")
        except OSError as exc:
            raise ApplianceError(ErrorCode.OVERLOADED) from exc

    def write(self, content: bytes) -> None:
        """Add bytes.

        Raises:
            ApplianceError: `DOCUMENT_TOO_LARGE`, `OVERLOADED`.
        """
        if self._memory.size_bytes + len(content) > self._limit:
            raise ApplianceError(
                ErrorCode.DOCUMENT_TOO_LARGE, params={"limit": self._limit}
            )
        try:
            self._memory.write(content)
        except OSError as exc:
            raise ApplianceError(ErrorCode.OVERLOADED) from exc

    def whole(self) -> SealedMemory:
        """The document, once all of it is there.

        Raises:
            ApplianceError: `DOCUMENT_EMPTY`.
        """
        self.end()
        return self.all()[0]

    def end(self) -> None:
        """Say that all of the present one is there: what follows is another one's.

        Raises:
            ApplianceError: `DOCUMENT_EMPTY`.
        """
        if not self._memory.size_bytes:
            raise ApplianceError(ErrorCode.DOCUMENT_EMPTY)
        self._memory.end_document()

    def all(self) -> list[SealedMemory]:
        """Those that were ended, in order."""
        return self._memory.sealed_documents()
