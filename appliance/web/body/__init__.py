"""The one reader of request bodies: what it lets through is exactly what it says.

Every route that takes a body takes it here. A body is never held beyond its
limit, never waited for beyond its time, and never read as two things. It is taken
from the connection only while a view reads it, which is after who asks was let in.
"""

from appliance.web.body.multipart import (
    DocumentForm,
    Part,
    SentFile,
    read_file,
    read_form,
    read_parts,
)
from appliance.web.body.reading import (
    GROUP_PART,
    MULTIPART,
    PARTY_PART,
    BoundedRequest,
    Budget,
    Held,
    Limits,
    brings_document,
    check_type,
    chunks,
    discard,
    face_limits,
    hold_as,
    is_multipart,
    json_limit,
    multipart_limit,
    read_bytes,
    read_document,
    read_document_object,
    read_object,
    release,
    taken,
)

__all__ = [
    "GROUP_PART",
    "MULTIPART",
    "PARTY_PART",
    "BoundedRequest",
    "Budget",
    "DocumentForm",
    "Held",
    "Limits",
    "Part",
    "SentFile",
    "brings_document",
    "check_type",
    "chunks",
    "discard",
    "face_limits",
    "hold_as",
    "is_multipart",
    "json_limit",
    "multipart_limit",
    "read_bytes",
    "read_document",
    "read_document_object",
    "read_file",
    "read_form",
    "read_object",
    "read_parts",
    "release",
    "taken",
]
