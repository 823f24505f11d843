"""`rubrica webhooks listen` at an API that wants to be left alone for a time."""

import aiohttp

from appliance.cli.webhooks.listener import Listener
from appliance.domain.clock import SystemClock
from tests.support.webhooks.receiver import WebhookReceiver

FORWARD = "http://127.0.0.1:9/"


async def test_listener_waits_as_long_as_it_is_told(receiver: WebhookReceiver) -> None:
    """429 does not end it; what else the API refuses does."""
    async with aiohttp.ClientSession() as http:
        listener = Listener(http, receiver.url, "key", SystemClock())
        rests = []
        for asked in ("7", "Fri, 27 Nov 2026 12:00:00 GMT", "9" * 30):
            receiver.status, receiver.headers = 429, {"Retry-After": asked}
            assert await listener.look(FORWARD, "whsec_eA==")
            rests.append(listener.rest_s)
        assert rests == [7, 2, 3600]

        json = {"Content-Type": "application/json"}
        receiver.status, receiver.headers, receiver.text = 200, json, "[]"
        assert await listener.look(FORWARD, "whsec_eA==")
        assert listener.rest_s == 2

        receiver.status = 403
        assert not await listener.look(FORWARD, "whsec_eA==")
