"""The names that people reach an installation by: their certificate and addresses.

Source: RFC 9525 "Service Identity in TLS" §6.3 (wildcards); docs/installing.md.
"""

import ipaddress
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from appliance.operations.setup.addresses import addresses_of_host
from appliance.operations.setup.proxy import fits
from appliance.operations.setup_answers import Answers
from appliance.settings import SettingsError

_MOST_BYTES: Final = 1_048_576
"""Of a file of certificates."""


def look_at_certificate(answers: Answers) -> Iterator[str]:
    """What is wrong with the web server's certificate, where it is there already.

    Args:
        answers: those so far, with the certificate and the addresses.
    """
    path = Path(answers.certificate)
    if not fits(answers) or not path.exists():
        return
    try:
        certificate = _read_certificate(path)
    except SettingsError as exc:
        yield str(exc)
        return
    if certificate.not_valid_after_utc <= datetime.now(UTC):
        yield f"{path}: ended {certificate.not_valid_after_utc:%Y-%m-%d}"
    missing = [host for host in _hosts(answers) if not _covers(certificate, host)]
    if missing:
        yield f"{path}: is not for {', '.join(missing)}"


def look_at_key(answers: Answers) -> Iterator[str]:
    """What is wrong with the key of that, where both are there.

    Args:
        answers: those so far, with certificate and key.
    """
    path = Path(answers.certificate_key)
    if not fits(answers) or not path.exists():
        return
    try:
        key = load_pem_private_key(_read(path), None)
    except TypeError:
        yield f"{path}: has a password, which the web server would have to be told"
        return
    except (SettingsError, ValueError, UnsupportedAlgorithm) as exc:
        named = str(exc) if isinstance(exc, SettingsError) else f"{path}: is no key"
        yield named
        return
    own = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    other = Path(answers.certificate)
    try:
        certified = _read_certificate(other).public_key()
    except SettingsError:
        return  # told by its own question
    if own != certified.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo):
        yield f"{path}: is not the key of {other}"


def missing_yet(answers: Answers) -> Iterator[str]:
    """What people need before they come, and setup can do without.

    Args:
        answers: all of them.
    """
    for host in _hosts(answers):
        try:
            addresses_of_host(host)
        except SettingsError as exc:
            yield f"{exc}; people need it, and the web server too"
    for file in (answers.certificate, answers.certificate_key):
        if fits(answers) and not Path(file).exists():
            yield f"{file}: is not there; the web server needs it"


def _hosts(answers: Answers) -> list[str]:
    """Of the three addresses, each once."""
    urls = (answers.base_url, answers.iframe_url, answers.admin_url)
    return list(dict.fromkeys(host for url in urls if (host := urlsplit(url).hostname)))


def _read(path: Path) -> bytes:
    """A small file.

    Raises:
        SettingsError: it cannot be read, or is none.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as exc:
        msg = f"{path}: cannot be read ({exc.strerror})"
        raise SettingsError(msg) from exc
    if len(content) > _MOST_BYTES:
        msg = f"{path}: has more than {_MOST_BYTES:,} bytes"
        raise SettingsError(msg)
    return content


def _read_certificate(path: Path) -> x509.Certificate:
    """The first of a file, which is the server's own.

    Raises:
        SettingsError: there is none.
    """
    try:
        return x509.load_pem_x509_certificates(_read(path))[0]
    except ValueError as exc:
        msg = f"{path}: has no certificate (PEM)"
        raise SettingsError(msg) from exc


def _covers(certificate: x509.Certificate, host: str) -> bool:
    """Whether clients take a certificate for a host's; a wildcard is one label."""
    try:
        names = certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value
    except (x509.ExtensionNotFound, ValueError):
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        known = {name.lower() for name in names.get_values_for_type(x509.DNSName)}
        above = host.partition(".")[2]
        return host in known or f"*.{above}" in known
    return address in names.get_values_for_type(x509.IPAddress)
