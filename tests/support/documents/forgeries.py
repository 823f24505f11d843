"""Every kind of appended forgery, and the signed files that each applies to.

    for name, forgery in FORGERIES.items():
        forged = forgery(pdf)

No kind needs a key. Source: findings S2 to S4; ISO 32000-2, 7.3 to 7.5 and 12.8;
V. Mladenov et al., CCS 2019; C. Mainka et al., NDSS 2021; S. Rohlmann et al., S&P 2021.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

from tests.support.documents.forged_catalog import CATALOG
from tests.support.documents.forged_fields import FIELDS
from tests.support.documents.forged_keys import REPEATED_KEYS
from tests.support.documents.forged_pages import PAGES
from tests.support.documents.forged_repairs import REPAIRS
from tests.support.documents.forged_sections import SECTIONS
from tests.support.documents.forged_streams import STREAMS
from tests.support.documents.forged_tokens import TOKENS
from tests.support.documents.forged_values import VALUES
from tests.support.documents.forgery import Forgery
from tests.support.documents.pdf_revisions import SignedFile
from tests.support.documents.signed_bases import BASES, base

FORGERIES: Final[Mapping[str, Forgery]] = {
    **REPEATED_KEYS,
    **SECTIONS,
    **STREAMS,
    **PAGES,
    **FIELDS,
    **CATALOG,
    **TOKENS,
    **REPAIRS,
    **VALUES,
}
"""By name."""


@cache
def bases_of(kind: str) -> list[str]:
    """List the signed files that a kind of forgery has a meaning for."""
    applies = FORGERIES[kind].applies
    return [name for name in BASES if applies(_opened(name))]


@cache
def _opened(name: str) -> SignedFile:
    return SignedFile(base(name))
