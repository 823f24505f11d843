"""`[documents]` and `[sandbox]`: how PDFs are kept, and looked at."""

import re
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, field_validator

from appliance.domain.documents.inspected import FindingKind
from appliance.domain.text.urls import read_address
from appliance.settings.named_files import STORING, Content, Holds
from appliance.settings.section import Seconds, Section

_BUCKET_URL: Final = re.compile(
    r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])"
    r"(?P<prefix>(/[A-Za-z0-9!_.*'()-]+)*)/?"
)
"""Source: Amazon S3 User Guide, "Bucket naming rules", "Safe characters"."""
_BLANKS: Final = frozenset(map(chr, range(0x21))) | {"\x7f"}
"""Which no address has; http.client refuses them by an error of its own."""


class DocumentSettings(Section):
    """Where PDFs are kept and how big they may be."""

    path: Path | None = None
    """Folder; the default is `documents` in `data_dir`."""
    url: str | None = None
    """`s3://bucket` or `s3://bucket/prefix`: documents are objects of an S3-compatible
    store, in the place of files below `path`; see `docs/storage.md`."""
    endpoint: str | None = None
    """Address of that store, `https://s3.example:9000`; the default is AWS's own for
    `region`. In PROD `http://` is for a store on this machine alone."""
    region: str = Field(default="us-east-1", pattern=r"^[A-Za-z0-9-]{1,64}$")
    """The region that its requests are signed for."""
    address_style: Literal["path", "virtual"] = "path"
    """Where its requests name the bucket: `path` (`https://s3.example/bucket`) or
    `virtual` (`https://bucket.s3.example`; `endpoint` is without the bucket)."""
    access_key_file: Annotated[Path | None, Holds(Content.PASSWORD, STORING)] = None
    """File with the id of the access key to that store."""
    secret_key_file: Annotated[Path | None, Holds(Content.PASSWORD, STORING)] = None
    """File with that access key's secret."""
    root_certificate_file: Annotated[
        Path | None, Holds(Content.CERTIFICATES, STORING)
    ] = None
    """Certificates (PEM) that the store's is checked by, beside the system's."""
    connect_timeout_s: float = Field(default=3, gt=0, le=60)
    """Longest that a connection to the store may take, in seconds."""
    request_timeout_s: float = Field(default=10, gt=0, le=300)
    """Longest that one request of the store may take, in seconds, twice that where it
    is repeated. Each moves 5 MiB at most, which the link must carry in this time."""
    limit_bytes: int = Field(default=50_000_000, ge=1024, le=104_857_600)
    """Largest document, in bytes."""
    pages: int = Field(default=5000, ge=1, le=5000)
    """Most pages of a document."""
    refuse: tuple[FindingKind, ...] = ()
    """Findings for which a document is not taken in: 422 `PDF_NOT_ALLOWED`; see
    `docs/documents.md`. By default the signer is told of each and decides."""
    reserve_bytes: int = Field(default=134_217_728, ge=0, le=1_099_511_627_776)
    """Room kept on the documents' disk for what was signed already, in bytes. As
    long as the disk has none left for it, nothing is signed (`STORAGE_FULL`). Make
    it as large as all the documents that are signed at a time; 0: none."""
    unused_days: int = Field(default=7, ge=1, le=3650)
    """Days after which a document that nothing refers to is removed."""
    upload_days: int = Field(default=30, ge=1, le=365)
    """Days that a document which an integrator's backend uploaded can be named in
    requests and sessions; what was made of it by then stays."""
    pictures_bytes: int = Field(default=33_554_432, ge=0, le=1_073_741_824)
    """Memory of each `embed` process for pictures of pages, in bytes. They are kept
    in memory alone, as nothing of a document lies on a disk unencrypted."""
    per_session: int = Field(default=20, ge=1, le=1000)
    """Documents that one session of the frame may bring, one after the other."""
    session_bytes: int = Field(default=209_715_200, ge=1024, le=10_737_418_240)
    """Bytes that one session of the frame may have brought at a time; a document of
    `limit_bytes` always passes. What it replaced goes within minutes."""
    integrator_bytes: int = Field(default=5_368_709_120, ge=1024, le=1_099_511_627_776)
    """Bytes that all sessions of one integrator's frame may have brought at a time
    and nobody has been asked to sign. They go at the sessions' ends. As many may its
    backend have uploaded that nobody has been asked to sign."""
    intake_room_bytes: int = Field(default=536_870_912, ge=0, le=1_099_511_627_776)
    """Room on the documents' disk, in bytes, that documents which come in leave: with
    less of it they are refused (`STORAGE_FULL`), and what came in before is signed."""

    @field_validator("url")
    @classmethod
    def _is_a_bucket(cls, given: str | None) -> str | None:
        if given is not None and not _BUCKET_URL.fullmatch(given):
            msg = "must be s3://bucket or s3://bucket/prefix"
            raise ValueError(msg)
        return given

    @field_validator("endpoint")
    @classmethod
    def _is_an_endpoint(cls, given: str | None) -> str | None:
        if given is None:
            return given
        address = read_address(given)
        if address is not None and "@" in address.netloc:
            msg = "has a user in it; set documents.access_key_file"
            raise ValueError(msg)
        if (
            address is None
            or address.scheme not in {"http", "https"}
            or not address.hostname
            or address.path not in {"", "/"}
            or address.query
            or address.fragment
            or set(given) & _BLANKS
        ):
            msg = "must be https://host or https://host:port"
            raise ValueError(msg)
        return given

    @property
    def bucket(self) -> tuple[str, str] | None:
        """The bucket, and the prefix of its objects' names; None: it is a folder."""
        found = _BUCKET_URL.fullmatch(self.url or "")
        return found and (found["bucket"], found["prefix"].lstrip("/"))

    @property
    def address(self) -> str:
        """Where the store's requests go, with the bucket where that is the style."""
        given = self.endpoint or f"https://s3.{self.region}.amazonaws.com"
        scheme, _, host = given.rstrip("/").partition("://")
        if self.address_style == "virtual" and self.bucket is not None:
            host = f"{self.bucket[0]}.{host}"
        return f"{scheme}://{host}"


class SandboxSettings(Section):
    """Limits within which one PDF is looked at."""

    socket: Path | None = None
    """Unix socket; the default is `sandbox.sock` in `run_dir`."""
    memory_bytes: int = Field(default=1_073_741_824, ge=268_435_456)
    """Address space of one job, in bytes."""
    cpu_s: int = Field(default=10, ge=1, le=120)
    """CPU time of one job, in seconds."""
    wall_s: Seconds = 20
    """Wall time of one job, in seconds; what computes has half of `cpu_s` before."""
    jobs: int = Field(default=4, ge=1, le=64)
    """Jobs that run at the same time; more wait. Drawing never takes all places, and
    one integrator's jobs do not either (see `docs/limits.md`)."""
    render_cpu_s: int = Field(default=3, ge=1, le=120)
    """CPU time of a job that draws a page, in seconds; at most `cpu_s` is used."""
    render_wall_s: Seconds = 6
    """Wall time of a job that draws a page, likewise; at most `wall_s` is used."""
