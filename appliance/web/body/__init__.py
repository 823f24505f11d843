"""The one reader of request bodies: what it lets through is exactly what it says.

Every route that takes a body takes it here. A body is never held beyond its
limit, never waited for beyond its time, and never read as two things.
"""

from appliance.web.body.limits import (
    Limits,
    bounded_request,
    face_limits,
)
from appliance.web.body.multipart import (
    MULTIPART,
    Form,
    Part,
    is_multipart,
    read_form,
    read_parts,
)
from appliance.web.body.reading import (
    discard,
    read_bytes,
    read_document,
    read_object,
)
from appliance.web.body.urlencoded import read_fields, read_pairs

__all__ = [
    "MULTIPART",
    "Form",
    "Limits",
    "Part",
    "bounded_request",
    "discard",
    "face_limits",
    "is_multipart",
    "read_bytes",
    "read_document",
    "read_fields",
    "read_form",
    "read_object",
    "read_pairs",
    "read_parts",
]
