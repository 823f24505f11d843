"""Fields on pages of a document that has no form.

PDFium draws fields only where there is a form, and a signature makes one: what a
signer was not shown would be seen once the document is signed. Other programs draw
them before.

Source: ISO 32000-2, 12.7.3 and 12.5.6.19.
"""

from collections.abc import Sequence

from pyhanko.pdf_utils.generic import DictionaryObject

from appliance.domain.errors import DocumentRefusedError, ErrorCode
from worker.sandbox.inspect.pages import Page
from worker.sandbox.inspect.pdf_objects import Budget, entry, name, raw_items, resolve


def demand_form(
    catalog: DictionaryObject, pages: Sequence[Page], budget: Budget
) -> None:
    """Demand a form where pages have fields.

    Args:
        catalog: of the document.
        pages: by walking.
        budget: steps that may be taken over the whole document.

    Raises:
        DocumentRefusedError: `PDF_AMBIGUOUS`, or `PDF_TOO_COMPLEX`.
    """
    if isinstance(entry(catalog, "/AcroForm"), DictionaryObject):
        return
    for page in pages:
        for raw in raw_items(entry(page.node, "/Annots")):
            budget.take()
            note = resolve(raw)
            # The name may be any string: some programs go by the letters.
            if isinstance(note, DictionaryObject) and name(note, "/Subtype") in {
                "/Widget",
                "Widget",
            }:
                raise DocumentRefusedError(ErrorCode.PDF_AMBIGUOUS, "fields, no form")
