"""One bucket of an S3-compatible store: requests that end in a bounded time.

    bucket = Bucket(settings.documents)
    found = bucket.read("integrator/ab/ab….pdf", 0, 4096)

Requests block: they run in threads. Each moves a few MiB at most, and has a time-out
of its own, so a link that falls silent is known by the time that it takes. After such
a request all others are refused at once for a moment, so that callers do not queue up
behind one another's time-outs.

Source: Amazon S3 API Reference; obstore, "S3Store", "ClientConfig".
"""

import contextlib
import re
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import structlog
from obstore import exceptions
from obstore.store import S3Store

from appliance.documents.s3.abandoned_uploads import UnfinishedUploads
from appliance.documents.s3.credentials import read_access
from appliance.domain.errors import ApplianceError, DocumentsAwayError, ErrorCode
from appliance.settings import DocumentSettings, SettingsError
from appliance.system.tls import read_authorities

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta
    from obstore.store import ClientConfig, S3Credential

_log = structlog.get_logger(__name__)
PART_BYTES: Final = 5_242_880
"""Of an upload in parts; the least that S3 takes."""
_PARTS_AT_ONCE: Final = 2
_REST_S: Final = 1.0
_RETRIES: Final = 2
_IDLE_S: Final = 5.0
"""How long a connection is kept for the next request."""
_PAGE: Final = 1000
"""Names that one request of a list gives, at most. Source: S3, ListObjectsV2."""
_FULL: Final = (
    "507 ",
    "InsufficientStorage",
    "QuotaExceeded",
    "StorageFull",
    "BucketQuotaExceeded",
)
"""What stores say that have no room. Source: RFC 4918, 11.5; Ceph, MinIO."""
_BEYOND: Final = "416 Range Not Satisfiable"
_REASON_CHARS: Final = 300
_CODE: Final = re.compile(r"<Code>(\w{1,60})</Code>")


class ChangedError(Exception):
    """An object that another one has taken the place of, since it was looked at."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An object that is there."""

    name: str
    size_bytes: int
    written: datetime
    version: str | None
    """Tells it from what takes its place; None where the store does not say."""


class Bucket:
    """Objects by name, below the prefix of the settings.

    Args:
        settings: with a `url`.
        timeout_s: of one request, in seconds; None: as the settings say.

    Raises:
        SettingsError: a file that the settings name cannot be used.
    """

    def __init__(
        self, settings: DocumentSettings, *, timeout_s: float | None = None
    ) -> None:
        self.url = settings.url or ""
        """For what is told to people; without a secret."""
        limit = min(timeout_s or settings.request_timeout_s, settings.request_timeout_s)
        self._store = _open(settings, limit, _RETRIES)
        self._once = _open(settings, limit, 0)
        """For what must not happen a second time, later."""
        self._uploads = UnfinishedUploads(settings, limit)
        self._lock = threading.Lock()
        self._rests_until = 0.0
        self._reason = ""

    def look(self, name: str) -> Stored | None:
        """An object's size and age; None where there is none.

        Raises:
            DocumentsAwayError: the store does not answer, or refuses.
        """
        with self._named_faults():
            try:
                return _stored(self._store.head(name))
            except FileNotFoundError:
                return None

    def read(
        self, name: str, start: int, size: int, version: str | None = None
    ) -> tuple[Stored, memoryview] | None:
        """A piece of an object, not copied; None where there is no object.

        Args:
            name: its name.
            start: of the piece, from 0; within the object.
            size: of the piece, 1 or more; less comes where the object ends.
            version: that it must still be.

        Raises:
            ChangedError: it is another version.
            DocumentsAwayError: the store does not answer, or refuses.
        """
        wanted: GetOptions = {"range": (start, start + size)}
        if version is not None:
            wanted["if_match"] = version
        with self._named_faults():
            try:
                found = self._store.get(name, options=wanted)
                return _stored(found.meta), memoryview(found.bytes())
            except FileNotFoundError:
                return None
            except exceptions.PreconditionError as exc:
                raise ChangedError from exc
            except exceptions.GenericError as exc:
                if _BEYOND not in str(exc):
                    raise
                # Of an object without a byte no piece can be asked for.
                return _stored(self._store.head(name)), memoryview(b"")

    def create(self, name: str, content: bytes) -> bool:
        """Put an object where there is none; whether there was none.

        A store that ignores `If-None-Match` puts it in the place of one that is there
        (see `probe`).

        Raises:
            ApplianceError: `STORAGE_FULL`.
            DocumentsAwayError: the store does not answer, or refuses.
        """
        with self._named_faults():
            try:
                self._store.put(name, content, mode="create", use_multipart=False)
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                return False
            return True

    def write(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """Put an object, in the place of one that is there.

        Args:
            name: its name.
            content: its bytes; what comes in pieces is sent in parts, some of which
                are held at a time. The object is there whole, or not at all.

        Raises:
            ApplianceError: `STORAGE_FULL`.
            DocumentsAwayError: the store does not answer, or refuses.
        """
        with self._named_faults():
            if isinstance(content, bytes):
                self._store.put(name, content, use_multipart=False)
                return
            self._store.put(
                name,
                iter(content),
                use_multipart=True,
                chunk_size=PART_BYTES,
                max_concurrency=_PARTS_AT_ONCE,
            )

    def delete(self, name: str) -> None:
        """Remove an object; the request is sent once, and never again.

        Raises:
            DocumentsAwayError: the store does not answer, or refuses; it may be gone.
        """
        with (
            self._named_faults(),
            contextlib.suppress(FileNotFoundError),
        ):
            self._once.delete(name)

    def pages(self, below: str | None = None) -> Iterator[list[Stored]]:
        """All objects, some at a time, in the order of their names.

        Args:
            below: a name's beginning, up to a `/`; None: all.

        Raises:
            DocumentsAwayError: the store does not answer, or refuses.
        """
        found = iter(self._store.list(below, chunk_size=_PAGE))
        while True:
            with self._named_faults():
                page = next(found, None)
            if page is None:
                return
            yield [_stored(each) for each in page]

    def abandon_uploads(self, before: datetime) -> int:
        """Remove uploads that were begun before then and not finished; how many.

        Raises:
            DocumentsAwayError: the store does not answer, or refuses.
        """
        with self._named_faults():
            return self._uploads.abandon(before)

    def probe(self) -> str:
        """Write, read and remove an object of no meaning.

        Returns:
            What is amiss, in a sentence; empty where nothing is.

        Raises:
            ApplianceError: `STORAGE_FULL`.
            DocumentsAwayError: the store does not answer, or refuses.
        """
        name, content = f".probe-{secrets.token_hex(8)}", secrets.token_bytes(64)
        self.write(name, content)
        try:
            found = self.read(name, 0, len(content))
            if found is None or found[1] != content:
                return "does not give back what was written"
            if self.create(name, content):
                return (
                    "ignores If-None-Match: choose a store that honours conditional "
                    "writes"
                )
        finally:
            self.delete(name)
        return "" if self.look(name) is None else "does not remove what it is told to"

    @contextmanager
    def _named_faults(self) -> Iterator[None]:
        """Name what the store says, and leave it alone for a moment where it is away.

        Raises:
            ApplianceError: `STORAGE_FULL`.
            DocumentsAwayError: it does not answer, or refuses.
        """
        if time.monotonic() < self._rests_until:
            raise DocumentsAwayError(self._reason)
        try:
            yield
        except (exceptions.BaseError, OSError, ValueError) as exc:
            told = str(exc)
            if any(word in told for word in _FULL):
                raise ApplianceError(ErrorCode.STORAGE_FULL) from exc
            self._seen(f"{self.url}: {_first_line(told)}")
            raise DocumentsAwayError(self._reason) from exc
        self._seen("")

    def _seen(self, reason: str) -> None:
        """Remember how the store was found.

        Args:
            reason: why it is away; empty: it is not.
        """
        with self._lock:
            changed, self._reason = bool(reason) != bool(self._reason), reason
            self._rests_until = time.monotonic() + _REST_S if reason else 0.0
        if changed:
            log = _log.error if reason else _log.info
            log("documents.store", right=not reason, bucket=self.url, reason=reason)


def _open(settings: DocumentSettings, timeout_s: float, retries: int) -> S3Store:
    """A client of the bucket that no variable of the environment says more to.

    Raises:
        SettingsError: a file that the settings name cannot be used.
    """
    access = read_access(settings)
    credential: S3Credential = {
        "access_key_id": access.key_id,
        "secret_access_key": access.secret,
        "token": None,
        "expires_at": None,
    }
    try:
        return S3Store(
            access.bucket,
            prefix=access.prefix or None,
            endpoint=settings.address,
            region=settings.region,
            virtual_hosted_style_request=settings.address_style == "virtual",
            conditional_put="etag",
            disable_bulk_delete=True,
            skip_signature=False,
            credential_provider=lambda: credential,
            client_options=_client_options(settings, timeout_s),
            retry_config={
                "max_retries": retries,
                "retry_timeout": timedelta(seconds=timeout_s),
                "backoff": {"max_backoff": timedelta(seconds=1)},
            },
        )
    except exceptions.BaseError as exc:
        # So it is, whatever the address.
        msg = (
            "documents.endpoint: without certificates of the system, as Debian's "
            f"ca-certificates has them, there is no client ({_first_line(str(exc))})"
        )
        raise SettingsError(msg) from exc


def _client_options(settings: DocumentSettings, timeout_s: float) -> "ClientConfig":
    """Time-outs and TLS.

    Raises:
        SettingsError: the authorities' file cannot be used.
    """
    options: ClientConfig = {
        "allow_http": (settings.endpoint or "").startswith("http:"),
        "connect_timeout": timedelta(
            seconds=min(settings.connect_timeout_s, timeout_s)
        ),
        "timeout": timedelta(seconds=timeout_s),
        # One that a silent link killed meanwhile would cost the next its time-out.
        "pool_idle_timeout": timedelta(seconds=_IDLE_S),
    }
    if (authorities := settings.root_certificate_file) is not None:
        read_authorities(authorities)  # its words for what is none
        options["root_certificate"] = authorities.read_bytes()
    return options


def _stored(meta: "ObjectMeta") -> Stored:
    return Stored(meta["path"], meta["size"], meta["last_modified"], meta["e_tag"])


def _first_line(told: str) -> str:
    """What a store says, without what the library adds for who mends that."""
    said = _CODE.search(told)
    line = told.partition("\n")[0].partition(": <?xml")[0]
    return f"{line[:_REASON_CHARS]}{f' ({said[1]})' if said else ''}"
