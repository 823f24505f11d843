"""What people are told about a document before it is signed."""

from typing import Final

from appliance.domain.document import FindingKind

FINDINGS: Final[dict[FindingKind, str]] = {
    FindingKind.JAVASCRIPT: "The document contains JavaScript.",
    FindingKind.LAUNCH_ACTION: "The document can start programs.",
    FindingKind.EMBEDDED_FILES: "The document has other files inside.",
    FindingKind.RICH_MEDIA: "The document contains video, sound or 3D.",
    FindingKind.EXTERNAL_LINK_ACTION: "The document sends to, or opens, other files.",
    FindingKind.XFA_STATIC: "The document has a second form (XFA) that may differ.",
    FindingKind.HYBRID_XREF: "Old and new programs may show the document differently.",
    FindingKind.ENCRYPTED_EMPTY_PASSWORD: "The document is encrypted without password.",
    FindingKind.DAMAGED: "The document is damaged, but can be read.",
    FindingKind.COUNT_LIES: "The document states a wrong number of pages.",
    FindingKind.SIGNATURE_BROKEN: "A signature in the document is not valid.",
    FindingKind.LAYERS: "The document has layers that can be shown or hidden.",
}
"""What a signer is told before signing: msgids of the catalogues."""
