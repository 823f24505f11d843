"""HTTP/1.1 of one connection: what Hypercorn speaks, without what no face has."""

from http import HTTPStatus
from typing import Any

import h11
from hypercorn.events import Closed
from hypercorn.protocol.h11 import H11Protocol

from appliance.domain.errors import ErrorCode
from appliance.web.server.bare_errors import bare
from appliance.web.server.rate_limited_log import Rarely
from appliance.web.server.request_target import origin_form

_refused = Rarely("call.refused_by_protocol")


class _RefusedError(Exception):
    """A call that is not made: its head asks for what no face has.

    Args:
        status: HTTP status of the answer.
    """

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _PatientH11(h11.Connection):
    """Whose client is told to send its body when it is wanted, not before.

    Source: RFC 9110, 10.1.1.
    """

    @property
    def they_are_waiting_for_100_continue(self) -> bool:
        """What Hypercorn would answer to at once, before who asks is known."""
        return False

    @property
    def awaits_continue(self) -> bool:
        """Whether the client waits to be told."""
        return self.client_is_waiting_for_100_continue


class Http1(H11Protocol):
    """HTTP/1.1: no upgrade to HTTP/2, none of its prefaces, no WebSocket.

    In clear text nobody needs HTTP/2, and its frames would pass by our limits.

    Args:
        arguments: those of Hypercorn's class.

    Source: RFC 9113, 3.1 and 3.4.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._h11 = _PatientH11(
            h11.SERVER, max_incomplete_event_size=self.config.h11_max_incomplete_size
        )
        self.connection = self._h11
        self._method = b""

    @property
    def is_receiving(self) -> bool:
        """Whether the present call's body has not wholly come, and may."""
        is_open = self._h11.their_state is h11.SEND_BODY
        return is_open and not self._h11.awaits_continue

    @property
    def is_answering(self) -> bool:
        """Whether the present call's answer has begun."""
        return self._h11.our_state is not h11.SEND_RESPONSE

    async def handle(self, event: Any) -> None:
        """Take what came.

        Args:
            event: bytes, or the connection's end.
        """
        try:
            await super().handle(event)
        except _RefusedError as exc:
            await self._send_error_response(exc.status)
            await self.send(Closed())

    async def go_on(self) -> None:
        """Tell the client to send its body, if it waits to be told."""
        if self._h11.awaits_continue:
            await self._send_h11_event(
                h11.InformationalResponse(status_code=100, headers=[])
            )

    async def _check_protocol(self, event: h11.Request) -> None:
        """Let an upgrade to h2c be, which a server may do; refuse what is not ours.

        Raises:
            _RefusedError: it is no HTTP/1, asks for nothing that could be an
                address, or for a WebSocket.
        """
        self._method = event.method
        if event.http_version not in {b"1.0", b"1.1"}:
            raise _RefusedError(HTTPStatus.BAD_REQUEST)
        if origin_form(event.method, event.target) is None:
            raise _RefusedError(HTTPStatus.BAD_REQUEST)
        upgrades = [value for name, value in event.headers if name == b"upgrade"]
        if any(value.strip().lower() == b"websocket" for value in upgrades):
            raise _RefusedError(HTTPStatus.FORBIDDEN)

    async def _create_stream(self, request: h11.Request) -> None:
        """Begin a call, whose target is its path and query."""
        target = origin_form(request.method, request.target) or request.target
        if target != request.target:
            request = h11.Request(
                method=request.method,
                headers=request.headers.raw_items(),
                target=target,
                http_version=request.http_version,
            )
        await super()._create_stream(request)

    async def _maybe_recycle(self) -> None:
        self._method = b""
        await super()._maybe_recycle()

    async def _send_error_response(self, status_code: int) -> None:
        """Answer what never became a call."""
        _refused.tell(status=status_code)
        headers, body = bare(ErrorCode.BAD_HEADER, status_code)
        await self._send_h11_event(
            h11.Response(status_code=status_code, headers=headers)
        )
        if self._method != b"HEAD":
            await self._send_h11_event(h11.Data(data=body))
        await self._send_h11_event(h11.EndOfMessage())
