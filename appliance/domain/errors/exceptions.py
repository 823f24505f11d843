"""The exceptions that carry a code, and what its sentence needs.

If only the code differs, raise `ApplianceError`; a subclass is for what somebody
catches, or for members that its answers always have.
"""

from collections.abc import Callable, Mapping, Sequence

from appliance.domain.errors.codes import ErrorCode
from appliance.domain.errors.sentences import (
    CHECK_DIGIT,
    DOCUMENTS_AWAY,
    FAILED_FOR_GOOD,
    FILES_AWAY,
    OTP_USED,
    SENTENCES,
)
from appliance.domain.text.sentences import fill
from appliance.domain.text.state_words import PLACES, STATE_WORDS
from appliance.domain.vocab.certificates import StatementFault


class ApplianceError(Exception):
    """Something that the caller can be told: a code and the values it needs.

    Args:
        code: what happened.
        params: the values that the sentence's places need.
        extras: further members of the answer (`attemptsLeft`, `stamp`, …);
            plain JSON values, safe for the caller.
        sentence: the msgid of what is said, where it is not that of the code.
    """

    def __init__(
        self,
        code: ErrorCode,
        *,
        params: dict[str, object] | None = None,
        extras: dict[str, object] | None = None,
        sentence: str | None = None,
    ) -> None:
        self.code = code
        self.params = params or {}
        self.extras = extras or {}
        self.sentence = sentence or SENTENCES[code]
        """The msgid of what is said; fill it with `params` after translation."""
        super().__init__(code.value)

    def told(self, sentence: str, translate: Callable[[str], str] = str) -> str:
        """Fill the places of a sentence, perhaps a translated one.

        Args:
            sentence: with the same named places as `sentence`.
            translate: puts the words for a state into the language of the sentence.
        """
        params = _Blank(self.params)
        for name in PLACES & params.keys():
            if (word := STATE_WORDS.get(str(params[name]))) is not None:
                params[name] = translate(word)
        return fill(sentence, params)

    def __str__(self) -> str:
        """The code and the English sentence, for logs and terminals."""
        return f"{self.code}: {self.told(self.sentence)}"


class _Blank(dict[str, object]):
    """Params in which a place without a value shows as a question mark."""

    def __missing__(self, key: str) -> str:
        return "?"


class FieldInvalidError(ApplianceError):
    """A field has a value out of its domain (decisions: 400 `FIELD_INVALID`).

    Args:
        field: the field's wire name.
        allowed: the allowed values, or one phrase such as "4 to 72"; a list in the
            answer either way.
        kind: what the value must be in JSON: `string`, `integer`, `boolean`, `array`;
            the answer's `fieldType`, since `type` is the problem's own (RFC 9457).
        code: `FIELD_INVALID`, or what a subclass says.
        sentence: the msgid of what is said, where it is not that of the code.
        params: the values that it needs, besides `field`.
    """

    def __init__(
        self,
        field: str,
        allowed: Sequence[str] | str | None = None,
        kind: str | None = None,
        *,
        code: ErrorCode = ErrorCode.FIELD_INVALID,
        sentence: str | None = None,
        params: dict[str, object] | None = None,
    ) -> None:
        extras: dict[str, object] = {"field": field}
        if kind is not None:
            extras["fieldType"] = kind
        if allowed is not None:
            extras["allowed"] = [allowed] if isinstance(allowed, str) else [*allowed]
        told = {"field": field, **(params or {})}
        super().__init__(code, params=told, extras=extras, sentence=sentence)
        self.field = field
        self.allowed = allowed


class FieldMissingError(FieldInvalidError):
    """A field that must be there is not (400 `FIELD_MISSING`).

    Args:
        field: the field's wire name.
        allowed: what it may be, as in `FieldInvalidError`.
        kind: what it must be in JSON, as there.
    """

    def __init__(
        self,
        field: str,
        allowed: Sequence[str] | str | None = None,
        kind: str | None = None,
    ) -> None:
        super().__init__(field, allowed, kind, code=ErrorCode.FIELD_MISSING)


class CodeUsedError(ApplianceError):
    """A one-time code that is right and was used before (`OTP_INVALID`).

    Its answer has two members more than that of a wrong code: `codeUsed` and
    `nextCodeIn`.

    Args:
        next_in_s: seconds until the app shows a code that works; 0 if it may show one
            now.
    """

    def __init__(self, next_in_s: int) -> None:
        extras: dict[str, object] = {"codeUsed": True, "nextCodeIn": next_in_s}
        super().__init__(ErrorCode.OTP_INVALID, extras=extras, sentence=OTP_USED)


class ChangedMeanwhileError(ApplianceError):
    """A change was made from values that are not the stored ones any more.

    Args:
        stored: values that are stored now, by their names in the record; no secret.
        changed: names of those that are not as they were seen.
        version: of what is stored now, to go on from.
    """

    def __init__(
        self,
        stored: Mapping[str, object],
        changed: Sequence[str] = (),
        version: str = "",
    ) -> None:
        super().__init__(ErrorCode.CHANGED_MEANWHILE)
        self.stored = stored
        self.changed = tuple(changed)
        self.version = version


class CheckDigitError(FieldInvalidError):
    """A CUIL of the right form whose last digit the others do not give.

    Args:
        field: the field's wire name.
        allowed: the form of a CUIL.
    """

    def __init__(self, field: str, allowed: str) -> None:
        super().__init__(field, allowed, sentence=CHECK_DIGIT)


class PrivateAddressError(FieldInvalidError):
    """An address of a network that is not called.

    Args:
        field: the field's wire name.
        allowed: what it may be.
    """


class SignersInvalidError(FieldInvalidError):
    """Signers who are well written, and cannot sign one document in turn.

    Args:
        sentence: what is wrong: a msgid.
        params: the values that it needs.
    """

    def __init__(self, sentence: str, **params: object) -> None:
        super().__init__("then", sentence=sentence, params=params)


class BadHeaderError(ApplianceError):
    """A header that cannot be taken (400 `BAD_HEADER`).

    Args:
        header: its name.
        sentence: what is wrong: a msgid.
        allowed: what it may be; empty where that is not the matter.
    """

    def __init__(self, header: str, sentence: str, *allowed: str) -> None:
        extras: dict[str, object] = {"field": header}
        if allowed:
            extras["allowed"] = list(allowed)
        super().__init__(
            ErrorCode.BAD_HEADER,
            params={"field": header},
            extras=extras,
            sentence=sentence,
        )


class PageOutOfRangeError(ApplianceError):
    """A page that the document does not have (422 `PAGE_OUT_OF_RANGE`).

    Args:
        page: as asked for.
        pages: how many there are, at least one.
    """

    def __init__(self, page: int, pages: int) -> None:
        super().__init__(
            ErrorCode.PAGE_OUT_OF_RANGE,
            params={"page": page, "pages": pages},
            extras={"field": "page", "allowed": [f"1..{pages}"]},
        )


class PresetFixedError(ApplianceError):
    """A look or place that is not the signer's to choose (409 `PRESET_FIXED`).

    Args:
        fields: wire names of what differs, at least one.
    """

    def __init__(self, *fields: str) -> None:
        super().__init__(
            ErrorCode.PRESET_FIXED,
            params={"fields": ", ".join(fields)},
            extras={"field": fields[0], "fields": [*fields]},
        )


class DomainInvalidError(ApplianceError):
    """An origin that cannot be allowed to show the frame.

    Args:
        reason: why, in English: a msgid, so that people read it translated.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(
            ErrorCode.DOMAIN_INVALID,
            extras={"field": "origin", "allowed": ["https://host[:port]"]},
        )
        self.reason = reason


class DocumentRefusedError(ApplianceError):
    """A document that cannot be taken in or signed, by a `PDF_*` code.

    Args:
        code: one of the document codes.
        reason: what was found, in English, for logs and operators.
    """

    def __init__(
        self,
        code: ErrorCode,
        reason: str = "",
        *,
        params: dict[str, object] | None = None,
        extras: dict[str, object] | None = None,
    ) -> None:
        super().__init__(code, params=params, extras=extras)
        self.reason = reason


class DocumentsAwayError(ApplianceError):
    """The store of documents is not there, or another installation's.

    Args:
        reason: what was found, in English, for logs and operators.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(ErrorCode.STORE_UNAVAILABLE, sentence=DOCUMENTS_AWAY)
        self.reason = reason


class FilesAwayError(ApplianceError):
    """A file of keys, pins or certificates cannot be read (503 `STORE_UNAVAILABLE`).

    Which one it is, whoever raises this has logged.
    """

    def __init__(self) -> None:
        super().__init__(ErrorCode.STORE_UNAVAILABLE, sentence=FILES_AWAY)


class DocumentMissingError(ApplianceError):
    """The store of documents is there, and does not have this one."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.DOCUMENT_DAMAGED)


class DocumentAlteredError(ApplianceError):
    """A stored file that is not the document it is named by, or of another key."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.DOCUMENT_DAMAGED)


class ChainRefusedError(ApplianceError):
    """A chain of certificates that cannot be taken, by a code of its own.

    Args:
        code: one of the `CHAIN_…`, `CERTIFICATE_…` or `ANCHOR_…` codes.
        place: of the certificate at fault in what was sent, from 0.
        params: the values that the sentence needs.
    """

    def __init__(
        self, code: ErrorCode, place: int | None = None, **params: object
    ) -> None:
        extras: dict[str, object] = {"field": "cadena"}
        if place is not None:
            extras["certificado"] = place
        super().__init__(code, params=params, extras=extras)


class CertificateUnverifiableError(ApplianceError):
    """A certificate with which signatures would not be valid for our own verifier.

    Args:
        reason: the first answer of the verifier that is not *yes*, in English, for
            operators.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.CERTIFICATE_UNVERIFIABLE)
        self.reason = reason


class RequestFailedError(ApplianceError):
    """A request that failed for good, by a code that else passes by itself.

    Args:
        code: why.
    """

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code, params={"code": code.value}, sentence=FAILED_FOR_GOOD)


class HsmUnavailableError(ApplianceError):
    """The HSM cannot be used now; nothing is said about any key."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(ErrorCode.HSM_UNAVAILABLE)
        self.reason = reason


class ProfileDiffersError(HsmUnavailableError):
    """This host's settings would make another signature than was consented to."""

    def __init__(self) -> None:
        super().__init__(
            "the settings [profile] of this host differ from those of the front that"
            " sealed; make them the same on every host"
        )


class TsaUnavailableError(ApplianceError):
    """No timestamping authority gave a token that can be used.

    Args:
        reason: why, in English, for operators.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(ErrorCode.TSA_UNAVAILABLE)
        self.reason = reason


class HsmRefusedError(ApplianceError):
    """The HSM works, and what was asked of it cannot be done.

    Args:
        reason: why, in English, without anything secret; for operators.
        code: how the caller is told.
    """

    def __init__(self, reason: str, code: ErrorCode = ErrorCode.TASK_FAILED) -> None:
        super().__init__(code, params={"reason": reason})
        self.reason = reason


class KeyNotFoundError(ApplianceError):
    """A healthy HSM has no such key; never said of a token that is away."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(ErrorCode.CERTIFICATE_NOT_USABLE)
        self.reason = reason


class CredentialRefusedError(ApplianceError):
    """A key that must not be used: what is recorded beside it is not its owner's.

    Args:
        fault: the check that failed, for audit and log.
        reason: details in English, without anything secret; for operators.
    """

    def __init__(self, fault: StatementFault, reason: str = "") -> None:
        super().__init__(ErrorCode.CERTIFICATE_NOT_USABLE)
        self.layer = fault.value
        self.fault = fault
        self.reason = reason


class ActivationInvalidError(ApplianceError):
    """What was sealed does not open: a row was altered, or a key is not its own.

    Args:
        layer: which one held: `seal` (the activation), `outer` (the credential),
            `hsm` (the wrapped key) or `journal` (this host saw it end before).
    """

    def __init__(self, layer: str) -> None:
        super().__init__(ErrorCode.ACTIVATION_INVALID)
        self.layer = layer
