"""Where an integrator's people sign: an address of its own, as a template.

sign_link("https://example.org/firmar?p={procesoId}", process, request)
"""

import re
from typing import Final

from appliance.domain.ids import ProcessId, RequestId
from appliance.domain.text.urls import read_address

PLACES: Final = ("{procesoId}", "{solicitudId}")
"""What stands for the ids of what is signed there."""
_LONGEST: Final = 500
_SAFE: Final = re.compile(r"[!#-;=?-\[\]_a-z~{}]+", re.ASCII)
"""Characters of an address, and braces; no blank, quote or angle bracket."""


def is_sign_url(text: str) -> bool:
    """Whether a text is an address, with no braces but those of `PLACES`.

    Args:
        text: as it was typed.
    """
    if len(text) > _LONGEST or not _SAFE.fullmatch(text):
        return False
    bare = text
    for place in PLACES:
        bare = bare.replace(place, "0")
    address = read_address(bare)
    return (
        address is not None
        and address.scheme in {"http", "https"}
        and bool(address.hostname)
        and "@" not in address.netloc
        and not {"{", "}"} & {*bare}
        # Which site it is, no id decides.
        and address.netloc in text
    )


def sign_link(template: str, process: ProcessId, request: RequestId) -> str:
    """The address where one request is signed.

    Args:
        template: as `is_sign_url` takes it.
        process: that the request belongs to.
        request: of the signer.
    """
    values = (str(process), str(request))
    for place, value in zip(PLACES, values, strict=True):
        template = template.replace(place, value)
    return template
