"""Members of webhooks' messages, against their schema."""

from appliance.api.wire.backend_answers import MessageData
from appliance.domain.requests.history import TOLD
from appliance.domain.requests.told_names import told_members


def test_schema_has_every_member_of_a_message() -> None:
    """Whatever event tells it."""
    members = {name for names in TOLD.values() for name in names}
    told = told_members(dict.fromkeys(members, "2026-01-01T00:00:00Z"))
    assert told.keys() <= MessageData.__annotations__.keys()
