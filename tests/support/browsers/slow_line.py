"""The line of a frame in Chromium: as slow as a test wants, and what came over it.

    line = await SlowLine.of(frame)
    await line.slow()
    assert line.received_bytes < 1_000_000
    await line.free()

A frame of another site has a process of its own, so it has a line of its own too.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from playwright.async_api import CDPSession, Frame

BYTES_S: Final = 1_500_000 // 8
"""Bytes a second of a line of 1.5 Mb/s."""
LATENCY_MS: Final = 50
_DOCUMENT: Final = "/embed/api/document"


@dataclass
class SlowLine:
    """What a frame sends and fetches."""

    session: CDPSession
    received_bytes: int = 0
    """Of documents."""
    calls: int = 0
    """Of documents, whole or in parts."""
    _documents: set[str] = field(default_factory=set)

    @classmethod
    async def of(cls, frame: Frame) -> "SlowLine":
        """The line of a frame, as fast as the machine lets it be."""
        line = cls(await frame.page.context.new_cdp_session(frame))
        line.session.on("Network.requestWillBeSent", line._note_call)
        line.session.on("Network.dataReceived", line._note_bytes)
        await line.session.send("Network.enable")
        return line

    async def slow(self) -> None:
        """From now on 1.5 Mb/s, both ways."""
        await self._set(BYTES_S)

    async def free(self) -> None:
        """As fast as the machine lets it be again."""
        await self._set(-1)

    async def _set(self, bytes_s: int) -> None:
        conditions = {
            "offline": False,
            "latency": 0 if bytes_s < 0 else LATENCY_MS,
            "downloadThroughput": bytes_s,
            "uploadThroughput": bytes_s,
        }
        await self.session.send("Network.emulateNetworkConditions", conditions)

    def _note_call(self, event: dict[str, Any]) -> None:
        request = event["request"]
        if request["method"] == "GET" and request["url"].endswith(_DOCUMENT):
            self._documents.add(event["requestId"])
            self.calls += 1

    def _note_bytes(self, event: dict[str, Any]) -> None:
        if event["requestId"] in self._documents:
            self.received_bytes += event["dataLength"]
