"""What people are told about a document before it is signed."""

from typing import Final

from appliance.domain.documents.inspected import Damage, FindingKind
from appliance.domain.errors import (
    FIELD_LOCKED,
    FIELD_READ_ONLY,
    SENTENCES,
    ApplianceError,
    ErrorCode,
)

FINDINGS: Final[dict[FindingKind, str]] = {
    FindingKind.JAVASCRIPT: "The document contains JavaScript.",
    FindingKind.LAUNCH_ACTION: "The document can start programs.",
    FindingKind.EMBEDDED_FILES: "The document has other files inside.",
    FindingKind.RICH_MEDIA: "The document contains video, sound or 3D.",
    FindingKind.EXTERNAL_LINK_ACTION: "The document opens other files or addresses.",
    FindingKind.FORM_SUBMISSION: (
        "The document can send what is filled in to somewhere else."
    ),
    FindingKind.XFA_STATIC: "The document has a second form (XFA) that may differ.",
    FindingKind.HYBRID_XREF: "Old and new programs may show the document differently.",
    FindingKind.ENCRYPTED_EMPTY_PASSWORD: "The document is encrypted without password.",
    FindingKind.SIGNING_RESTRICTED: (
        "Whoever encrypted the document asked that it not be changed or signed."
    ),
    FindingKind.DAMAGED: "The document is damaged, but can be read.",
    FindingKind.REPAIRED: (
        "The document arrived damaged, or could be read in more than one way. This is "
        "a corrected copy, and the copy is what gets signed."
    ),
    FindingKind.REPAIRED_LOOK: (
        "The corrected copy looks different from the document that arrived."
    ),
    FindingKind.COUNT_LIES: "The document states a wrong number of pages.",
    FindingKind.SIGNATURE_BROKEN: (
        "A signature in the document is not valid, or the document was changed after "
        "it."
    ),
    FindingKind.SIGNATURE_UNCHECKED: (
        "A signature in the document could not be checked. That does not mean that it "
        "is wrong."
    ),
    FindingKind.USAGE_RIGHTS: (
        "The document has usage rights for Adobe Reader, which may stop working once "
        "it is signed."
    ),
    FindingKind.ALTERNATE_IMAGES: (
        "The document has images with an alternate version that may be printed or "
        "shown in their place."
    ),
    FindingKind.MISSING_APPEARANCES: (
        "The document does not say how some of its notes or fields look; each program "
        "draws them in its own way."
    ),
    FindingKind.UNEMBEDDED_FONTS: (
        "The document uses fonts that it does not contain; each program may show that "
        "text differently."
    ),
    FindingKind.DRAWN_DIFFERENTLY: (
        "Programs may draw parts of this document differently: others may see "
        "something else."
    ),
    FindingKind.FIELD_SHOWS_OTHER: (
        "The document has fields that show something other than the value they hold; "
        "some programs will show that value."
    ),
    FindingKind.LAYERS: "The document has layers that can be shown or hidden.",
    FindingKind.HIDDEN_ANNOTATIONS: "The document has notes or fields that are hidden.",
    FindingKind.OFF_PAGE_CONTENT: (
        "The document has notes or fields that are not on any visible page."
    ),
    FindingKind.APPEARANCES_LEFT_OPEN: (
        "Each program may show the document's fields differently."
    ),
    FindingKind.OVERLAPPING_ANNOTATIONS: (
        "The document has notes or fields that cover one another."
    ),
    FindingKind.COVERED_TEXT: (
        "The document has text that notes or fields cover, so that it is not seen."
    ),
    FindingKind.OFF_PAGE_TEXT: (
        "The document has text outside the visible part of a page."
    ),
    FindingKind.HIDDEN_LAYERS: (
        "The document has layers that are not shown at first, or only on paper."
    ),
    FindingKind.REPLACED_CONTENT: (
        "The content of a page was replaced; the former one is still in the file."
    ),
    FindingKind.UNSHOWN_PAGES: (
        "The file holds pages that the document does not show."
    ),
    FindingKind.UNEXAMINED_PARTS: (
        "Part of the file could not be examined; what it contains is not known."
    ),
}
"""What a signer is told before signing: msgids of the catalogues."""

DAMAGES: Final[dict[Damage, str]] = {
    Damage.SURROUNDINGS: "There were bytes before its start or after its end.",
    Damage.CROSS_REFERENCES: "The table of its objects was wrong.",
    Damage.PAGE_TREE: "The tree of its pages was wrong.",
    Damage.STREAMS: "The length of its content was wrong.",
    Damage.METADATA: "Its metadata (XMP) could not be read.",
    Damage.FORM_FIELDS: "Its form had fields of the same name, or some other fault.",
    Damage.SYNTAX: "It did not follow the format.",
    Damage.AMBIGUOUS: "Programs could read it in different ways.",
    Damage.UNVERIFIABLE: (
        "Some programs would have called a signature on it invalid, as it was."
    ),
    Damage.PAGES: "Some programs showed only part of its pages; the copy has them all.",
    Damage.USAGE_RIGHTS: "It granted rights that end with any change to it.",
    Damage.LOOK: "Some page looks different in the copy.",
    Damage.LOOK_UNKNOWN: (
        "Some page could not be compared with how it looked in the original."
    ),
}
"""What was wrong with a document that was repaired: msgids of the catalogues."""

FIELD_OBSTACLES: Final[dict[str, str]] = {
    FIELD_READ_ONLY: "Whoever made the document does not allow signing here.",
    FIELD_LOCKED: "An earlier signature does not allow signing here.",
    SENTENCES[ErrorCode.SIGNATURE_FIELD_DEMANDS]: (
        "It asks for a kind of signature that cannot be made here."
    ),
    SENTENCES[ErrorCode.SIGNERS_LOCKED_OUT]: (
        "If you signed here, those who sign after you could not."
    ),
}
"""Obstacles in a list of signature fields, by the sentences of `obstacle`: the signer
chooses another field there, and reads no terms of PDF. Msgids of the catalogues."""


def field_obstacle(error: ApplianceError) -> str:
    """Return the msgid for a field of the list that cannot be signed.

    Args:
        error: of `appliance.documents.docmdp_policy.obstacle`.
    """
    return FIELD_OBSTACLES[error.sentence]
