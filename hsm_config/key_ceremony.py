"""`rubrica hsm ceremony-record`: the sheet of a key ceremony, to be printed.

It says what the tokens hold and what `hsm check` finds, and leaves room for the
names and signatures of who was there; docs/key-ceremony.md tells the ceremony.
Spanish first, for that is what is signed; no secret is in it.
"""

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pkcs11
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from pkcs11 import Attribute
from pkcs11.exceptions import NoSuchToken, PKCS11Error

from appliance.domain.clock import Clock, SystemClock
from appliance.domain.errors import HsmUnavailableError
from appliance.domain.keys.hsm_keys import TokenRole
from appliance.settings import HsmSettings, Settings
from hsm_config.pkcs11.key_pairs import read_public, spki
from hsm_config.pkcs11.module import (
    Library,
    describe,
    find_token,
    log_in,
    members,
    module_path,
    opened,
)
from hsm_config.pkcs11.objects import search
from hsm_config.pkcs11.pin import AskPin, obtain_pin
from hsm_config.profile import load_profile
from hsm_config.self_check.check import check
from hsm_config.self_check.report import CheckReport, Mark

_SYSTEM_CLOCK: Final = SystemClock()
_PREFIX: Final = "rubrica-"
_GROUP: Final = 8
"""Hex digits between two blanks of a fingerprint, for who reads it aloud."""
_BLANK_ROWS: Final = 5
_KEYS_NOTE: Final = (
    "_Sale_: la clave puede salir del token (CKA_EXTRACTABLE). La huella de un par "
    "es el SHA-256 de su clave pública (SubjectPublicKeyInfo); la de una clave "
    "maestra, su CKA_CHECK_VALUE si el equipo lo da."
)
_NO: Final = "—"
_MARKS: Final = {
    Mark.OK: "ok",
    Mark.WEAK: "**débil / weak**",
    Mark.BAD: "**MAL / BAD**",
}


def ceremony_record(
    settings: Settings, clock: Clock = _SYSTEM_CLOCK, ask: AskPin | None = None
) -> str:
    """Look at tokens and files, and write the sheet.

    Must not run in a process that has the HSM open.

    Args:
        settings: the installation.
        clock: dates the sheet.
        ask: asks an operator for a PIN, where the settings want that.

    Returns:
        Markdown.

    Raises:
        SettingsError: settings, profile or a PIN file cannot be used.
        HsmRefusedError: two tokens share a label.
        HsmUnavailableError: a module, a token or a PIN does not work.
    """
    report = check(settings, clock, ask=ask)
    tokens, keys = _look(settings, ask)
    parts = [
        _head(settings, clock.now()),
        _section("Tokens", "Tokens"),
        _table(("Uso / use", "Etiqueta", "N.º de serie", "Modelo", "Firmware"), tokens),
        _section("Claves", "Keys"),
        _table(("Token", "Clave / key", "Clase", "Huella / fingerprint", "Sale"), keys),
        _KEYS_NOTE,
        _section("Archivos públicos", "Public files"),
        _table(("Archivo / file", "SHA-256"), _files(settings)),
        _section("Control del HSM", "HSM check"),
        _checked(report),
        _section("Presentes", "Present"),
        _table(("Nombre / name", "Documento", "Función / role", "Firma"), _blank(4)),
        _section("Pasos y observaciones", "Steps and remarks"),
        _table(("Hora", "Paso / step", "Quién / who", "Iniciales"), _blank(4)),
    ]
    return "\n\n".join(parts) + "\n"


def _head(settings: Settings, at: datetime) -> str:
    kind = f"{settings.environment.value}{', DEMO' if settings.trial else ''}"
    name = _cell(settings.installation)
    lines = [
        "# Acta de ceremonia de claves / Key ceremony record",
        "",
        f"- Instalación / installation: **{name}** ({kind})",
        f"- Fecha / date: {at.isoformat(timespec='seconds')}",
        f"- Rúbrica {version('rubrica')}, perfil / profile `{settings.hsm.profile}`",
        f"- Modo de las claves / key mode: `{settings.hsm.key_mode.value}`",
    ]
    return "\n".join(lines)


def _look(
    settings: Settings, ask: AskPin | None
) -> tuple[list[list[str]], list[list[str]]]:
    """The rows of tokens and of keys.

    Raises:
        HsmUnavailableError: a module, a token or a PIN does not work.
    """
    profile = load_profile(settings.hsm.profile)
    tokens: list[list[str]] = []
    keys: list[list[str]] = []
    modules: dict[Path, HsmSettings] = {}
    for own in members(settings.hsm):
        modules.setdefault(module_path(own, profile), own)
    try:
        for path, first in modules.items():
            with opened(first, profile) as library:
                for use, own, role in _tokens(settings):
                    if module_path(own, profile) != path:
                        continue
                    found, session = _open(library, own, role, settings, ask)
                    tokens.append([use, *_token(found)])
                    keys += [[found.label, *row] for row in _keys(session)]
    except PKCS11Error as exc:
        raise HsmUnavailableError(describe(exc)) from exc
    return tokens, keys


def _tokens(settings: Settings) -> Iterable[tuple[str, HsmSettings, TokenRole]]:
    """Every token of the installation, with the settings of its module."""
    for number, own in enumerate(members(settings.hsm), 1):
        use = "firma" if number == 1 else f"firma ({number})"
        yield use, own, TokenRole.FIRMA
    yield "pki", settings.hsm, TokenRole.PKI


def _open(
    library: Library,
    own: HsmSettings,
    role: TokenRole,
    settings: Settings,
    ask: AskPin | None,
) -> tuple[pkcs11.Token, pkcs11.Session]:
    wanted = own.firma if role is TokenRole.FIRMA else own.pki
    try:
        token = find_token(library, wanted.label)
    except NoSuchToken:
        msg = f"token {wanted.label} is away"
        raise HsmUnavailableError(msg) from None
    return token, log_in(token, obtain_pin(wanted, settings.environment, ask))


def _token(token: pkcs11.Token) -> list[str]:
    serial = token.serial.decode("ascii", "replace").strip("\0 ")
    firmware = ".".join(str(part) for part in token.firmware_version)
    return [token.label, serial, f"{token.manufacturer_id} {token.model}", firmware]


def _keys(session: pkcs11.Session) -> list[list[str]]:
    """The installation's own keys of a token; users' keys are none of them."""
    rows = []
    for item in search(session, {}):
        label = str(getattr(item, "label", "") or "")
        if not label.startswith(_PREFIX) or isinstance(item, pkcs11.PublicKey):
            continue
        if isinstance(item, pkcs11.PrivateKey):
            fingerprint = _public_fingerprint(session, item)
            # A user's resident key is named by its id alone, and is not ours.
            if label == f"{_PREFIX}{item.id.hex()}":
                continue
        elif isinstance(item, pkcs11.SecretKey):
            fingerprint = _check_value(item)
        else:
            continue
        leaves = "SÍ / YES" if item[Attribute.EXTRACTABLE] else "no"
        rows.append([label, item.key_type.name, fingerprint, leaves])
    return sorted(rows)


def _public_fingerprint(session: pkcs11.Session, key: pkcs11.PrivateKey) -> str:
    for item in search(session, {Attribute.ID: key.id}):
        if isinstance(item, pkcs11.PublicKey):
            return _grouped(hashlib.sha256(spki(read_public(item))).hexdigest())
    return _NO


def _check_value(key: pkcs11.SecretKey) -> str:
    try:
        value = bytes(key[Attribute.CHECK_VALUE])
    except PKCS11Error:
        return _NO
    return value.hex() or _NO


def _files(settings: Settings) -> list[list[str]]:
    """Certificates by their own fingerprint, other files by their bytes."""
    rows = []
    for path in sorted((settings.data_dir / "pki").glob("*.pem")):
        content = path.read_bytes()
        try:
            digest = x509.load_pem_x509_certificate(content).fingerprint(SHA256()).hex()
        except ValueError:
            digest = hashlib.sha256(content).hexdigest()
        rows.append([path.name, _grouped(digest)])
    return rows


def _checked(report: CheckReport) -> str:
    rows = [[_MARKS[one.mark], one.name, one.detail] for one in report.lines]
    verdict = "apto / fit" if report.good else "**NO APTO / NOT FIT**"
    return f"{_table(('', '', ''), rows)}\n\nResultado / verdict: {verdict}"


def _section(spanish: str, english: str) -> str:
    return f"## {spanish}" if spanish == english else f"## {spanish} / {english}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [
        head,
        ["---"] * len(head),
        *([_cell(cell) for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    """Text that ends no cell and begins no markup."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|")


def _blank(columns: int) -> list[list[str]]:
    return [["&nbsp;"] * columns for _ in range(_BLANK_ROWS)]


def _grouped(digest: str) -> str:
    return " ".join(digest[at : at + _GROUP] for at in range(0, len(digest), _GROUP))
