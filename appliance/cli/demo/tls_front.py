"""TLS for a trial: decrypts at an address of the network, hands on to this machine.

Browsers give pages of `http://` on a network's address no `crypto.subtle`, no
`crypto.randomUUID` and no clipboard; the frame and the demo site need them.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
CONNECTIONS: Final = 256
"""Connections at once; one more is closed."""
VALID: Final = timedelta(days=90)
_LEFT_AT_LEAST: Final = timedelta(days=14)
_HANDSHAKE_S: Final = 10.0
_CHUNK: Final = 65_536
_SKEW: Final = timedelta(hours=1)
"""A telephone's clock may be slow."""


@dataclass(frozen=True, slots=True)
class Forward:
    """One port of the network's address, and where its connections go."""

    port: int
    target: tuple[str, int]


class TlsFront:
    """Accepts TLS connections and forwards what they carry.

    Args:
        address: that it listens on.
        forwards: its ports.
        certificate: PEM file.
        key: PEM file.
    """

    def __init__(
        self,
        address: str,
        forwards: Collection[Forward],
        certificate: Path,
        key: Path,
    ) -> None:
        self._address = address
        self._forwards = forwards
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
        self._tls.load_cert_chain(certificate, key)
        self._open = 0

    async def serve(
        self, stopped: asyncio.Event, listening: asyncio.Event | None = None
    ) -> None:
        """Serve until the event is set.

        Args:
            stopped: ends it.
            listening: set once every port accepts connections.

        Raises:
            OSError: a port cannot be had.
        """
        async with contextlib.AsyncExitStack() as servers:
            for forward in self._forwards:
                server = await asyncio.start_server(
                    self._handler(forward.target),
                    self._address,
                    forward.port,
                    ssl=self._tls,
                    ssl_handshake_timeout=_HANDSHAKE_S,
                    limit=_CHUNK,
                )
                servers.callback(server.close)
            if listening is not None:
                listening.set()
            await stopped.wait()

    def _handler(self, target: tuple[str, int]) -> _Handler:
        async def handle(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            if self._open >= CONNECTIONS:
                writer.close()
                return
            self._open += 1
            try:
                await _forward(reader, writer, target)
            finally:
                self._open -= 1

        return handle


async def _forward(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    target: tuple[str, int],
) -> None:
    """Carry bytes both ways until either side ends."""
    with contextlib.suppress(OSError, ssl.SSLError), contextlib.closing(writer):
        inner_reader, inner_writer = await asyncio.open_connection(*target)
        with contextlib.closing(inner_writer):
            ways = {
                asyncio.create_task(_copy(reader, inner_writer)),
                asyncio.create_task(_copy(inner_reader, writer)),
            }
            # HTTP/1.1 has no half-closed connections: one end ends both.
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()


def ensure_certificate(
    certificate: Path, key: Path, address: str, now: datetime | None = None
) -> None:
    """Make a self-signed certificate of an address, unless there is a good one.

    Args:
        certificate: PEM file.
        key: PEM file, for its owner alone.
        address: IPv4.
        now: the time.
    """
    at = now or datetime.now(UTC)
    if key.exists() and _is_good(certificate, address, at):
        return
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, "Rúbrica: ensayo sin validez")]
    )
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - _SKEW)
        .not_valid_after(at + VALID)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(address))]),
            critical=False,
        )
        # It can vouch for nobody else, even where a device was told to trust it.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
        .sign(private, hashes.SHA256())
    )
    key.touch(mode=0o600)
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))


def _is_good(certificate: Path, address: str, at: datetime) -> bool:
    """Return whether a certificate is of this address and lasts long enough."""
    try:
        read = x509.load_pem_x509_certificate(certificate.read_bytes())
        names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
    of_address = IPv4Address(address) in names.value.get_values_for_type(x509.IPAddress)
    return of_address and read.not_valid_after_utc - at > _LEFT_AT_LEAST
