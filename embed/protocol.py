"""The browser messages between a host's page and the frame.

The six messages of the contract have exactly its fields; the others are additive,
and whoever does not know them ignores them. `python -m embed.generate` makes the
page's module and the JSON Schemas from this table.

Source: spec "Events", "Browser messages"; decisions "Iframe".
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from embed.fields import Field, Kind

PROTOCOL_VERSION: Final = 1
"""Raised only when a message of the contract would change; others may be added."""
SMALL_MESSAGE: Final = 65_536
"""Most that everything in a message but the document may have, in characters."""

_S, _I, _O = Kind.STRING, Kind.INTEGER, Kind.OBJECT


class Direction(StrEnum):
    """Who sends a message."""

    TO_HOST = "toHost"
    TO_FRAME = "toFrame"


@dataclass(frozen=True, slots=True)
class Message:
    """One type of message."""

    name: str
    """Its type without the maker's prefix: `init` for `svc.init`."""
    direction: Direction
    doc: str
    fields: tuple[Field, ...] = ()
    contract: bool = True
    """Whether the contract has it; else it is additive."""


DOCUMENT_FIELDS: Final = (
    Field("fileName", _S, "Name of the PDF file.", required=True, most=255),
    Field("mime", _S, "`application/pdf`.", most=100),
    Field("base64", _S, "The PDF in Base64 with no `data:` prefix."),
)
"""Source: spec "Document object"."""

# Blanks around a value are no part of it, here as in the REST API.
USER_FIELDS: Final = (
    Field(
        "dni", _S, "National ID number; 7 digits are padded.", pattern=" *[0-9]{7,8} *"
    ),
    Field(
        "cuil",
        _S,
        "Tax number, `XX-XXXXXXXX-X`.",
        pattern=" *[0-9]{2}-?[0-9]{8}-?[0-9] *",
    ),
    Field(
        "email",
        _S,
        "E-mail address.",
        required=True,
        most=254,
        pattern=" *[^@ \\t\\r\\n]{1,64}@[^@ \\t\\r\\n]{1,189} *",
    ),
    Field("gender", _S, "`M`, `F` or `X`.", allowed=("M", "F", "X")),
    Field("phone", _S, "Phone number, 10 digits.", pattern="[0-9]{10}"),
    Field("name", _S, "Full name.", most=200),
    Field("address", _S, "Address.", most=300),
)
"""Source: spec "Iframe init message payload"; decisions "required init fields"."""

INIT_FIELDS: Final = (
    Field("nonce", _S, "Identifier of this init.", required=True, most=128),
    Field("idemKey", _S, "Key that prevents a second signature.", most=128),
    Field("sessionToken", _S, "Ephemeral session token.", required=True, most=128),
    Field("userData", _O, "Who is to sign.", required=True, fields=USER_FIELDS),
    Field("autoLoadFile", _O, "Document to preload.", fields=DOCUMENT_FIELDS),
)
LEGACY_FIELD: Final = "apiKey"
"""What older hosts sent; it must never reach a browser."""

COMPLETED_FIELDS: Final = (
    Field("eventId", _S, "Identifier of the signing event.", required=True),
    Field("idemKey", _S, "The key of init, when one was sent."),
    Field("signedDocId", _S, "Identifier of the signed document.", required=True),
    Field(
        "document",
        _O,
        "The signed document.",
        required=True,
        fields=(
            Field("fileName", _S, "Name of the signed file.", required=True),
            Field("sha256", _S, "SHA-256 of the signed bytes, hex.", required=True),
            Field("size", _I, "Size of the signed file, in bytes.", required=True),
            Field("mime", _S, "Always `application/pdf`.", required=True),
        ),
    ),
    Field(
        "delivery",
        _O,
        "How the signed document is had.",
        required=True,
        fields=(
            Field(
                "mode",
                _S,
                "`binary` or `url`.",
                required=True,
                allowed=("binary", "url"),
            ),
            Field("fileBase64", _S, "The signed PDF, when the mode is `binary`."),
            Field("url", _S, "Download address, for 15 minutes by default."),
        ),
    ),
)
"""Source: spec "Signature-completed payload"; decisions "delivery"."""

ERROR_FIELDS: Final = (
    Field("code", _S, "What happened; the codes of the REST API.", required=True),
    Field("message", _S, "A sentence for people.", required=True),
    Field(
        "category",
        _S,
        "What a client does next.",
        required=True,
        allowed=("retry", "terminal", "new_session", "fix_request"),
    ),
    Field("retryable", Kind.BOOLEAN, "Whether the same may succeed later."),
    Field("requestId", _S, "Names the event in our log.", required=True),
    Field("field", _S, "The path of the field at fault, if one is."),
    Field("fieldType", _S, "What it must be in JSON."),
    Field("allowed", Kind.ARRAY, "What it may be, where that is a list."),
)

_HOST, _FRAME = Direction.TO_HOST, Direction.TO_FRAME
MESSAGES: Final = (
    Message(
        "ready",
        _HOST,
        "The frame has loaded and can receive init; once more where none came.",
        (
            Field("protocol", _I, "Version of the protocol."),
            Field("environment", _S, "`PREPROD` or `PROD`."),
            Field("maxDocumentBytes", _I, "Largest document."),
        ),
    ),
    Message(
        "handshake.ack",
        _HOST,
        "A valid init was received; every one is answered.",
        (
            Field("protocol", _I, "Version of the protocol."),
            Field("sessionExpiresAt", _S, "When the session ends, ISO 8601."),
        ),
    ),
    Message("signature.completed", _HOST, "The document is signed.", COMPLETED_FIELDS),
    Message("error", _HOST, "An error occurred in the process.", ERROR_FIELDS),
    Message("init", _FRAME, "Opens the conversation.", INIT_FIELDS),
    Message("load.file", _FRAME, "Loads or replaces the document.", DOCUMENT_FIELDS),
    Message(
        "document.loaded",
        _HOST,
        "The document's first page is on the screen.",
        (
            Field("fileName", _S, "Its name.", required=True),
            Field("sha256", _S, "SHA-256 of its bytes, hex.", required=True),
            Field("pages", _I, "Number of pages.", required=True),
            Field("size", _I, "Size in bytes.", required=True),
        ),
        contract=False,
    ),
    Message(
        "state",
        _HOST,
        "The frame is in another state (docs/frame.md).",
        (Field("state", _S, "Its name.", required=True),),
        contract=False,
    ),
    Message(
        "session.expiring",
        _HOST,
        "The session ends soon; answer with `session.renew`.",
        (
            Field("expiresAt", _S, "When, ISO 8601.", required=True),
            Field("secondsLeft", _I, "How long that is.", required=True),
        ),
        contract=False,
    ),
    Message(
        "session.renew",
        _FRAME,
        "Goes on with a new session token; nothing done is lost.",
        (Field("sessionToken", _S, "The new token.", required=True, most=128),),
        contract=False,
    ),
    Message(
        "cancel",
        _FRAME,
        "The host leaves; what waits for a signature goes on waiting.",
        (),
        contract=False,
    ),
    Message(
        "cancelled",
        _HOST,
        "Somebody left without a signature; what waits for one goes on waiting.",
        (
            Field(
                "reason",
                _S,
                "Who left.",
                required=True,
                allowed=("signer", "host"),
            ),
        ),
        contract=False,
    ),
    Message(
        "rejected",
        _HOST,
        "The signer refused to sign, for good: the request is over.",
        (
            Field("idemKey", _S, "The key of init, when one was sent."),
            Field(
                "loteId", _S, "The batch, in a session for one: none of it is signed."
            ),
            Field("reason", _S, "What the signer wrote, if anything."),
        ),
        contract=False,
    ),
    Message(
        "batch.completed",
        _HOST,
        "A batch is done: each signed document was told of before.",
        (
            Field("loteId", _S, "The batch.", required=True),
            Field("total", _I, "Its documents.", required=True),
            Field("firmados", _I, "Those that are signed.", required=True),
            Field("fallidos", _I, "Those that are not.", required=True),
        ),
        contract=False,
    ),
    Message(
        "signer.unknown",
        _HOST,
        "The signer's data match nobody who may sign; no more is told.",
        (),
        contract=False,
    ),
    Message(
        "resize",
        _HOST,
        "The height that the frame's content would fill.",
        (Field("height", _I, "In CSS pixels.", required=True),),
        contract=False,
    ),
)
"""Every message, once."""


def message(name: str) -> Message:
    """A message by its name without prefix.

    Args:
        name: of `MESSAGES`.
    """
    return next(item for item in MESSAGES if item.name == name)
