"""What schemathesis is told of this API; it loads it by `SCHEMATHESIS_HOOKS`.

Every other well-formed id is one that there is, by `RUBRICA_THINGS`: a JSON object of
names of parameters and their values.
"""

import base64
import json
import os
from typing import Any, Final

import schemathesis
from hypothesis import strategies as st

from tests.support.documents import pdfs

THINGS: Final[dict[str, Any]] = json.loads(os.environ.get("RUBRICA_THINGS", "{}"))
_UUID_CHARS: Final = 36

schemathesis.openapi.format(
    "cuil", st.sampled_from([THINGS.get("cuil", "20-26756539-3"), "20-05536168-2"])
)
schemathesis.openapi.format("cursor", st.just(base64.b64encode(b"s1:7").decode()))
schemathesis.openapi.format(
    "date-time",
    st.datetimes().map(lambda at: f"{2000 + at.year % 90}-{at:%m-01T%H:%M:%SZ}"),
)
schemathesis.openapi.format("pdf-name", st.sampled_from(["a.pdf", "año 2.pdf"]))
for _media_type, _samples in (
    ("application/pdf", (pdfs.one_page(), b"%PDF-1.4", b"x")),
    ("application/ocsp-request", (b"0", b"\x30\x00")),
    ("application/timestamp-query", (b"0", b"\x30\x00")),
):
    schemathesis.openapi.media_type(_media_type, st.sampled_from(_samples))


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: Any) -> Any:
    """Take things that there are, but for what would be gone afterwards."""
    is_kept = context.operation.method.lower() != "delete"
    for name, value in (path_parameters or {}).items():
        if is_kept and name in THINGS and _is_even(value):
            path_parameters[name] = THINGS[name]
    return path_parameters


def _is_even(value: object) -> bool:
    """Whether a well-formed value is one of every two."""
    if isinstance(value, int):
        return value % 2 == 0
    return (
        isinstance(value, str) and len(value) == _UUID_CHARS and value[-1] in "02468ace"
    )
