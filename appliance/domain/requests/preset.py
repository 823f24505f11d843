"""The look and place of a signature, as whoever asked for it wants them.

What the signer's call gives counts more, unless the preset is fixed.

Source: docs/api.md, "The look and place of a signature".
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from appliance.domain.errors import PresetFixedError
from appliance.domain.signing_command import (
    WIRE_NAMES,
    GivenParameters,
    SignParameters,
)

_PLACE: Final = frozenset({"page", "x", "y", "field"})
_SIGNERS_OWN: Final = frozenset({"restriction", "reason", "place"})
"""Neither look nor place: a fixed preset that does not set them leaves them free."""


@dataclass(frozen=True, slots=True)
class SignaturePreset:
    """Parameters that a request brings to its signature."""

    given: GivenParameters
    """Those that were set, page and place of an anchor among them."""
    fixed: bool = False
    """Whether the signer has to leave look and place as they are."""

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
        return {**self.given.to_wire(), **({"fijo": True} if self.fixed else {})}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """Read back what `to_json` wrote; for the record, not for input."""
        return cls(GivenParameters.from_wire(fields), fields.get("fijo", False))


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
