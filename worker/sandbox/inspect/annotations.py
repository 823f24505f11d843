"""The annotations of a document's pages.

Source: ISO 32000-2, 12.5.
"""

from collections.abc import Callable, Sequence

from pyhanko.pdf_utils.generic import DictionaryObject
from pyhanko.pdf_utils.misc import PdfDecodeLimitError

from appliance.domain.documents.inspected import FindingKind
from worker.sandbox.inspect.pages import Page
from worker.sandbox.inspect.pdf_objects import Budget, entry, raw_items, resolve


def find_among_annotations(
    pages: Sequence[Page],
    budget: Budget,
    is_found: Callable[[DictionaryObject, Page], bool],
    told: FindingKind,
) -> set[FindingKind]:
    """Look for one annotation that is to be told of.

    Args:
        pages: of the document.
        budget: steps that may be taken over the whole document.
        is_found: whether it is this one, of its page; may raise anything.
        told: the finding.

    Returns:
        That finding; `UNEXAMINED_PARTS` where an annotation cannot be read.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`, when the budget is used up.
    """
    found: set[FindingKind] = set()
    for page in pages:
        for raw in raw_items(entry(page.node, "/Annots")):
            budget.take()
            try:
                node = resolve(raw)
                is_told = isinstance(node, DictionaryObject) and is_found(node, page)
            except (MemoryError, PdfDecodeLimitError):
                raise
            except Exception:  # noqa: BLE001 (broken annotations raise anything)
                found.add(FindingKind.UNEXAMINED_PARTS)
                continue
            if is_told:
                return found | {told}
    return found
