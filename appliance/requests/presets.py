"""Look and place of a signature as who asks for it wants them, held to its document.

What a request brings to its signature is settled when it is made: the last page has its
number then, an anchor its page and point, and what could never be signed is refused.

Source: docs/api.md, "The look and place of a signature".
"""

import math
from datetime import datetime
from typing import Final

from appliance.admission.work_owner import working_for
from appliance.appearance.content import Stamping
from appliance.documents.docmdp_policy import check_permitted
from appliance.domain.appearance.details import StampDetails
from appliance.domain.appearance.geometry import as_seen
from appliance.domain.appearance.stamp import lay_out
from appliance.domain.appearance.text import StampSigner
from appliance.domain.clock import Clock
from appliance.domain.documents.inspected import Inspection, TextSearch
from appliance.domain.errors import (
    ANCHOR_BEYOND,
    ApplianceError,
    ErrorCode,
    PageOutOfRangeError,
)
from appliance.domain.people.identity import Person
from appliance.domain.ports import BlobStore, DocumentBytes, PdfInspector
from appliance.domain.requests.intake import StoredDocument
from appliance.domain.requests.preset import Anchor, SignaturePreset, WishedPreset
from appliance.domain.signing_command import GivenParameters, SignParameters
from appliance.domain.vocab import Restriction
from appliance.record.unit_of_work import Database

_NEAR_PT: Final = 0.001
"""As near to a whole point as a sum of floats may come and still mean it."""


class Presets:
    """Settles presets.

    Args:
        store: the record.
        documents: where PDFs are.
        inspector: the sandbox, which looks for anchors.
        clock: the time.
        stamping: what stamps show.
    """

    def __init__(
        self,
        store: Database,
        documents: BlobStore,
        inspector: PdfInspector,
        clock: Clock,
        stamping: Stamping,
    ) -> None:
        self._store = store
        self._documents = documents
        self._inspector = inspector
        self._clock = clock
        self._stamping = stamping

    async def settle(
        self,
        document: StoredDocument,
        wished: WishedPreset,
        person: Person,
        *,
        followed: bool = False,
        preceded: bool = False,
        shared: bool = False,
        pdf: DocumentBytes | None = None,
    ) -> SignaturePreset:
        """What a request brings to its signature; refused where that cannot be.

        Args:
            document: that is to be signed.
            wished: as it was asked for.
            person: its signer.
            followed: whether others sign after them.
            preceded: whether others sign before them.
            shared: whether others have the same turn.
            pdf: its bytes; None: they are kept already.

        Raises:
            DocumentRefusedError: the document cannot be searched.
            ApplianceError: `STAMP_ANCHOR_NOT_FOUND`, `PAGE_OUT_OF_RANGE`,
                `POSITION_OUT_OF_PAGE`, `SIGNERS_LOCKED_OUT`; as `check_permitted`;
                `SANDBOX_UNAVAILABLE`, `STORE_UNAVAILABLE`.
        """
        given = wished.given
        if wished.last_page:
            given = given.also(page=len(document.inspection.pages))
        if wished.anchor is not None:
            given = await self._anchored(document, given, wished.anchor, pdf)
        params = given.params
        if preceded and params.restriction is not Restriction.NO_VALUE:
            raise ApplianceError(ErrorCode.PDF_ALREADY_SIGNED)
        if shared and params.restriction is not Restriction.NO_VALUE:
            raise ApplianceError(ErrorCode.SIGNERS_LOCKED_OUT)
        defaults = self._stamping.defaults(given)
        async with self._store.read() as transaction:
            details = await self._stamping.details(
                transaction, params, document.integrator, defaults
            )
        check_makeable(
            document.inspection,
            params,
            person,
            self._clock.now(),
            details,
            followed=followed,
        )
        return SignaturePreset(given, wished.fixed, defaults)

    async def _anchored(
        self,
        document: StoredDocument,
        given: GivenParameters,
        anchor: Anchor,
        pdf: DocumentBytes | None,
    ) -> GivenParameters:
        """The same, at the point below a text.

        Raises:
            DocumentRefusedError: the document cannot be searched.
            PageOutOfRangeError: it has no such page.
            ApplianceError: `STAMP_ANCHOR_NOT_FOUND`; `SANDBOX_UNAVAILABLE`,
                `STORE_UNAVAILABLE`.
        """
        pages = document.inspection.pages
        only = given.params.page if "page" in given.names else None
        if only is not None and only > len(pages):
            raise PageOutOfRangeError(only, len(pages))
        if pdf is None:
            pdf = await self._documents.get(document.integrator, document.sha256)
        with working_for(document.integrator):
            search = await self._inspector.find_text(
                pdf, anchor.text, anchor.occurrence, only
            )
        if search.found is None:
            error = _not_found(anchor, search)
            raise error
        page = search.found.page
        if not 1 <= page <= len(pages) or page != (only or page):
            raise ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE)
        left, _, _, bottom = as_seen(pages[page - 1], search.found.rect)
        # Away from the text, so that whole points do not touch it.
        x, y = math.floor(left + _NEAR_PT), math.ceil(bottom - _NEAR_PT)
        return given.also(page=page, x=x + anchor.dx, y=y + anchor.dy)


def check_makeable(
    inspection: Inspection,
    params: SignParameters,
    person: Person,
    now: datetime,
    details: StampDetails,
    *,
    followed: bool,
) -> None:
    """Refuse a signature that its document does not allow, or has no room for.

    Args:
        inspection: of the document, up to date.
        params: of the signature.
        person: its signer.
        now: the time.
        details: what its stamp shows besides.
        followed: whether others sign after it.

    Raises:
        ApplianceError: `PAGE_OUT_OF_RANGE`, `POSITION_OUT_OF_PAGE`; as
            `check_permitted`.
    """
    check_permitted(inspection, params, followed=followed)
    named = StampSigner(person.name, person.cuil, person.locale)
    lay_out(params, named, now, inspection, details)


def _not_found(anchor: Anchor, search: TextSearch) -> ApplianceError:
    """The text is not there, or not in what was searched."""
    return ApplianceError(
        ErrorCode.STAMP_ANCHOR_NOT_FOUND,
        params={"text": anchor.text},
        extras={"field": "ancla"},
        sentence=None if search.whole else ANCHOR_BEYOND,
    )
