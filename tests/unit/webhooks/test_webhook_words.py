"""Whatever is told to integrators has its name everywhere that it is told.

Source: docs/integration.md "One request, and its history"; docs/webhooks.md.
"""

import re
from pathlib import Path

from admin_ui.webhook_words import EVENTS
from appliance.domain.requests.history import TOLD
from appliance.domain.requests.told_names import EVENT_NAMES, told_members
from appliance.domain.vocab import WebhookEvent
from appliance.webhooks.bodies import KINDS

_DOCS = Path(__file__).parents[3] / "docs"


def test_the_console_offers_every_event() -> None:
    """One that it does not is dropped when an endpoint is saved there."""
    assert set(EVENTS) == set(WebhookEvent)


def test_every_event_that_is_told_has_a_type() -> None:
    """And every member of it a name."""
    assert set(TOLD) == set(KINDS)
    members = {member for each in TOLD.values() for member in each}
    assert len(told_members(dict.fromkeys(members, "x"))) >= len(members) - 1
    for member in members:
        assert told_members({member: "x"}), member


def test_the_manual_has_what_became_of_a_request() -> None:
    """In the table of `historia`."""
    text = (_DOCS / "integration.md").read_text("utf-8")
    section = text.partition("| `evento` | What happened")[2].partition("\n\n")[0]
    names = [
        name
        for line in section.splitlines()[2:]
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    ]

    assert sorted(names) == sorted(EVENT_NAMES.values())
