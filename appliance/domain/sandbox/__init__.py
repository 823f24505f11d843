"""The words that sandbox and client say to each other; no I/O here.

One connection carries one job. A message is a 4-byte big-endian length, a JSON
object of that length, and the `binary` bytes that the object announces. The PDF
never travels in it: it comes as a sealed memfd beside the request's length.
"""

from appliance.domain.sandbox.callers import (
    UNNAMED,
    JobCaller,
    JobKind,
    caller_of,
    job_caller,
    socket_name,
)
from appliance.domain.sandbox.inspections import (
    damage_from_json,
    damage_to_json,
    inspection_from_json,
    inspection_to_json,
    inspections_from_json,
    inspections_to_json,
    sizes_from_json,
)
from appliance.domain.sandbox.messages import (
    ANSWER_BYTES_MAX,
    BINARY_BYTES_MAX,
    LENGTH,
    REQUEST_BYTES_MAX,
    MessageInvalidError,
    Operation,
    decode,
    encode,
)
from appliance.domain.sandbox.refusals import (
    DIED,
    REFUSALS,
    refusal_from_json,
    refusal_to_json,
    says_nothing,
)
from appliance.domain.sandbox.reports import (
    report_from_json,
    report_to_json,
    revoked_from_json,
    revoked_to_json,
)
from appliance.domain.sandbox.stamps import (
    layout_from_json,
    layout_to_json,
    picture_from_json,
    picture_to_json,
)
from appliance.domain.sandbox.text_search import (
    EDGE_MOST,
    search_from_json,
    search_to_json,
    wanted_from_json,
    wanted_to_json,
)

__all__ = [
    "ANSWER_BYTES_MAX",
    "BINARY_BYTES_MAX",
    "DIED",
    "EDGE_MOST",
    "LENGTH",
    "REFUSALS",
    "REQUEST_BYTES_MAX",
    "UNNAMED",
    "JobCaller",
    "JobKind",
    "MessageInvalidError",
    "Operation",
    "caller_of",
    "damage_from_json",
    "damage_to_json",
    "decode",
    "encode",
    "inspection_from_json",
    "inspection_to_json",
    "inspections_from_json",
    "inspections_to_json",
    "job_caller",
    "layout_from_json",
    "layout_to_json",
    "picture_from_json",
    "picture_to_json",
    "refusal_from_json",
    "refusal_to_json",
    "report_from_json",
    "report_to_json",
    "revoked_from_json",
    "revoked_to_json",
    "says_nothing",
    "search_from_json",
    "search_to_json",
    "sizes_from_json",
    "socket_name",
    "wanted_from_json",
    "wanted_to_json",
]
