"""The signing command as the core knows it: parameters of one signature.

Parsing from the wire is `appliance.api.wire.requests`; the size and place of the stamp
is `appliance.domain.appearance.stamp`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, Self, cast

from appliance.domain.text.canonical_json import canonical_json
from appliance.domain.vocab import CuilDisplay, FontName, FontStyle, Restriction

REASON_LENGTH: Final = 120
"""Most characters of `motivo` in a signing command."""
PLACE_LENGTH: Final = 60
"""Most characters of `lugar`."""
OPTIONAL_FIELDS: Final = ("campo", "motivo", "lugar", "cuil", "qr", "logo")
"""Fields that stand in `to_wire` only when they were given, so that the fingerprint
of a command without them never changes."""


WIRE_NAMES: Final[Mapping[str, str]] = {
    "font_color": "fontColor",
    "font_name": "fontName",
    "font_size": "fontSize",
    "font_style": "fontStyle",
    "page": "page",
    "x": "x",
    "y": "y",
    "zoom_percent": "zoomPercent",
    "restriction": "restriccion",
    "visible": "visible",
    "field": "campo",
    "reason": "motivo",
    "place": "lugar",
    "cuil": "cuil",
    "qr": "qr",
    "logo": "logo",
}
"""Names of the spec, by the fields of `SignParameters`."""


LOOK: Final = frozenset({"font_color", "font_name", "font_size", "font_style"})
"""Fields that only the classic design of a stamp goes by."""


@dataclass(frozen=True, slots=True)
class SignParameters:
    """Everything of a signing command but the password, defaults filled in.

    Source: spec "Signing command body"; decisions rows of the same names.
    """

    font_color: str = "BLACK"
    """A java.awt.Color name, or `#RRGGBB` in upper case."""
    font_name: FontName = FontName.SERIF
    font_size: int = 12
    """Points, 4 to 72."""
    font_style: FontStyle = FontStyle.PLAIN
    page: int = 1
    """1-based."""
    x: int | None = None
    """Points from the left of the page as seen; None: placed by itself."""
    y: int | None = None
    """Points from the top of the page as seen; None together with `x`."""
    zoom_percent: int = 100
    """10 to 400."""
    restriction: Restriction = Restriction.NO_VALUE
    visible: bool = True
    field: str | None = None
    """Full name of the document's own signature field to be signed; None: a new
    one. Its box then rules the stamp, and page, x and y are unused."""
    reason: str | None = None
    """Why it is signed, 1 to 120 characters."""
    place: str | None = None
    """Where it is signed, 1 to 60 characters."""
    cuil: CuilDisplay | None = None
    """How much of the CUIL is shown; None: by the setting."""
    qr: bool | None = None
    """Whether there is a QR code; None: by the setting."""
    logo: bool | None = None
    """Whether the logo is shown, if there is one; None: it is."""

    def to_wire(self) -> dict[str, object]:
        """The fields under the names of the spec, `x` and `y` null when absent.

        Those of `OPTIONAL_FIELDS` are left out when they were not given.
        """
        told = {wire: getattr(self, name) for name, wire in WIRE_NAMES.items()}
        return {
            wire: value.value if isinstance(value, StrEnum) else value
            for wire, value in told.items()
            if value is not None or wire not in OPTIONAL_FIELDS
        }

    @classmethod
    def from_wire(cls, fields: dict[str, object]) -> Self:
        """Read back what `to_wire` wrote; for stored parameters, not for input."""
        cuil = fields.get("cuil")
        return cls(
            font_color=cast("str", fields["fontColor"]),
            font_name=FontName(cast("str", fields["fontName"])),
            font_size=cast("int", fields["fontSize"]),
            font_style=FontStyle(cast("str", fields["fontStyle"])),
            page=cast("int", fields["page"]),
            x=cast("int | None", fields["x"]),
            y=cast("int | None", fields["y"]),
            zoom_percent=cast("int", fields["zoomPercent"]),
            restriction=Restriction(cast("str", fields["restriccion"])),
            visible=cast("bool", fields["visible"]),
            field=cast("str | None", fields.get("campo")),
            reason=cast("str | None", fields.get("motivo")),
            place=cast("str | None", fields.get("lugar")),
            cuil=None if cuil is None else CuilDisplay(cast("str", cuil)),
            qr=cast("bool | None", fields.get("qr")),
            logo=cast("bool | None", fields.get("logo")),
        )

    # A command asks for that of each of its requests several times.
    @lru_cache(maxsize=4096)  # noqa: B019 (of plain values)
    def sha256(self, request_id: int) -> str:
        """Fingerprint that tells a repeated command from another one.

        SHA-256, in hex, of the RFC 8785 JSON of all fields but `password`.
        Source: decisions "repeating firmar".
        """
        fields = {"solicitudId": request_id, **self.to_wire()}
        return hashlib.sha256(canonical_json(fields)).hexdigest()


_DEFAULTS: Final = SignParameters()


@dataclass(frozen=True, slots=True)
class GivenParameters:
    """What somebody said of a signature; the rest is left to others, or to defaults."""

    params: SignParameters = _DEFAULTS
    """What was given, and the defaults of the rest."""
    names: frozenset[str] = frozenset()
    """The fields of `SignParameters` that were given."""

    @classmethod
    def of(cls, **given: Any) -> Self:
        """What was given, by the fields of `SignParameters`; None is as not given."""
        said = {name: value for name, value in given.items() if value is not None}
        return cls(replace(_DEFAULTS, **said), frozenset(said))

    @classmethod
    def all_of(cls, params: SignParameters) -> Self:
        """Parameters that leave nothing to others."""
        return cls(params, frozenset(WIRE_NAMES))

    @classmethod
    def place_of(cls, params: SignParameters) -> Self:
        """Parameters of which all was chosen but the look of the words."""
        return cls(params, frozenset(WIRE_NAMES) - LOOK)

    def also(self, **more: Any) -> "GivenParameters":
        """The same and more of them, by the fields of `SignParameters`."""
        params = replace(self.params, **more)
        return GivenParameters(params, self.names | more.keys())

    def over(self, other: "GivenParameters") -> SignParameters:
        """These where they were given, else the other's, else the defaults.

        A place is taken as a whole: with `x` and `y` of these, or with a field, the
        other's place is none any more.

        Args:
            other: what counts less.
        """
        replaced = set(self.names)
        if "x" in self.names:
            replaced |= {"x", "y", "field"}
        if "field" in self.names:
            replaced |= {"page", "x", "y", "field"}
        taken = other.names - replaced
        return replace(self.params, **{n: getattr(other.params, n) for n in taken})

    def to_wire(self) -> dict[str, object]:
        """What was given, under the names of the spec."""
        wire = self.params.to_wire()
        told = (WIRE_NAMES[name] for name in WIRE_NAMES if name in self.names)
        return {name: wire[name] for name in told if wire.get(name) is not None}

    @classmethod
    def from_wire(cls, fields: Mapping[str, object]) -> Self:
        """Read back what `to_wire` wrote; for what is stored, not for input."""
        params = SignParameters.from_wire({**_DEFAULTS.to_wire(), **fields})
        names = {name for name, wire in WIRE_NAMES.items() if wire in fields}
        return cls(params, frozenset(names))
