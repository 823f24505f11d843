"""The look and place of a signature, as whoever asked for it wants them.

What the signer's call gives counts more, unless the preset is fixed.

Source: docs/api.md, "The look and place of a signature".
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self

from appliance.domain.errors import PresetFixedError
from appliance.domain.signing_command import (
    LOOK,
    WIRE_NAMES,
    GivenParameters,
    SignParameters,
)
from appliance.domain.vocab import StampDesign

_PLACE: Final = frozenset({"page", "x", "y", "field"})
_SIGNERS_OWN: Final = frozenset({"restriction", "reason", "place"})
"""Neither look nor place: a fixed preset that does not set them leaves them free."""
_DEFAULTS: Final = "defaults"
"""Member of a stored preset that is no field of the spec."""


@dataclass(frozen=True, slots=True)
class StampDefaults:
    """What a stamp shows where neither the call nor the request says it."""

    design: StampDesign
    qr: bool
    """Whether it has a QR code."""

    def classic_if_named(self, given: GivenParameters) -> "StampDefaults":
        """The same, classic where somebody names a part of the classic look.

        Args:
            given: by the call, or the request.
        """
        if not given.names & LOOK:
            return self
        return replace(self, design=StampDesign.CLASSIC)

    def to_json(self) -> dict[str, object]:
        """For the record."""
        return {"design": self.design.value, "qr": self.qr}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """Read back what `to_json` wrote; for the record, not for input."""
        return cls(StampDesign(fields["design"]), fields["qr"])


@dataclass(frozen=True, slots=True)
class SignaturePreset:
    """Parameters that a request brings to its signature."""

    given: GivenParameters
    """Those that were set, page and place of an anchor among them."""
    fixed: bool = False
    """Whether the signer has to leave look and place as they are."""
    defaults: StampDefaults | None = None
    """Those of when the request was made, so that no setting makes its stamp larger
    than the place that was looked at; None in requests of earlier versions."""

    @property
    def has_place(self) -> bool:
        """Whether it says where, and not only how."""
        return bool(self.given.names & _PLACE) or not self.given.params.visible

    def check(self, given: GivenParameters) -> None:
        """Refuse a call that would have it otherwise, where that is fixed.

        Args:
            given: by the signer's call.

        Raises:
            PresetFixedError: with the names of what differs.
        """
        if not self.fixed:
            return
        bound = (WIRE_NAMES.keys() - _SIGNERS_OWN) | self.given.names
        wanted, own = given.params, self.given.params
        differing = [
            WIRE_NAMES[name]
            for name in WIRE_NAMES
            if name in given.names & bound
            and getattr(wanted, name) != getattr(own, name)
        ]
        if differing:
            raise PresetFixedError(*differing)

    def to_json(self) -> dict[str, object]:
        """For the record: what was set, under the names of the spec."""
        defaults = self.defaults
        return {
            **self.given.to_wire(),
            **({"fijo": True} if self.fixed else {}),
            **({} if defaults is None else {_DEFAULTS: defaults.to_json()}),
        }

    def to_wire(self) -> dict[str, object]:
        """What was set, under the names of the spec, for whoever asked for it."""
        told = self.to_json()
        told.pop(_DEFAULTS, None)
        return told

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """Read back what `to_json` wrote; for the record, not for input."""
        defaults = fields.get(_DEFAULTS)
        return cls(
            GivenParameters.from_wire(fields),
            fields.get("fijo", False),
            None if defaults is None else StampDefaults.from_json(defaults),
        )


def effective(given: GivenParameters, preset: SignaturePreset | None) -> SignParameters:
    """How a request is signed: by the call, else by its preset, else by defaults.

    Args:
        given: by the signer's call.
        preset: of the request, if it has one.
    """
    return given.params if preset is None else given.over(preset.given)


@dataclass(frozen=True, slots=True)
class Anchor:
    """A text of the document, below which a stamp is to lie."""

    text: str
    """Its characters in NFC; runs of white space are as one space."""
    occurrence: int = 1
    """Which of several, from 1, in the order of the pages."""
    dx: int = 0
    """Points from the text's left edge to the stamp's, to the right as seen."""
    dy: int = 0
    """Points from the text's lower edge to the stamp's upper one, downwards."""


@dataclass(frozen=True, slots=True)
class WishedPreset:
    """A preset as it was asked for, before anybody looked at the document."""

    given: GivenParameters
    """Without `x`, `y` and field where there is an anchor; its page, if it has one,
    is then the only one that is searched."""
    fixed: bool = False
    last_page: bool = False
    """The page is the last one, whichever that is."""
    anchor: Anchor | None = None

    def to_json(self) -> dict[str, object]:
        """For the record: what was set, under the names of the spec, and ours."""
        told: dict[str, object] = {"given": self.given.to_wire()}
        if self.fixed:
            told["fixed"] = True
        if self.last_page:
            told["last_page"] = True
        if self.anchor is not None:
            told["anchor"] = asdict(self.anchor)
        return told

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """Read back what `to_json` wrote; for the record, not for input."""
        anchor = fields.get("anchor")
        return cls(
            GivenParameters.from_wire(fields["given"]),
            fields.get("fixed", False),
            fields.get("last_page", False),
            None if anchor is None else Anchor(**anchor),
        )
