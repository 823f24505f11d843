"""Where an integrator's people sign: an address of its own, as a template.

template = "https://example.org/firmar?proceso={procesoId}&lote={loteId}"
sign_link(template, process, request, batch)
"""

import re
from collections.abc import Sequence
from typing import Final

from appliance.domain.ids import ProcessId, RequestBatchId, RequestId
from appliance.domain.requests.request import RequestView
from appliance.domain.text.urls import read_address

PLACES: Final = ("{procesoId}", "{solicitudId}", "{loteId}")
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


def sign_link(
    template: str,
    process: ProcessId,
    request: RequestId,
    batch: RequestBatchId | None = None,
) -> str:
    """The address where one request, or a batch, is signed.

    Args:
        template: as `is_sign_url` takes it.
        process: that the request belongs to.
        request: of the signer.
        batch: that all of it is of; None: of none, and the place stays empty.
    """
    values = (str(process), str(request), batch or "")
    for place, value in zip(PLACES, values, strict=True):
        template = template.replace(place, value)
    return template


def sign_link_to(template: str, requests: Sequence[RequestView]) -> str:
    """The address where the first of several requests is signed.

    Args:
        template: as `is_sign_url` takes it.
        requests: of one signer and one integrator, at least one. The address names
            their batch where all are of the same one.
    """
    first, batches = requests[0], {view.batch for view in requests}
    batch = first.batch if len(batches) == 1 else None
    return sign_link(template, first.process, first.id, batch)
