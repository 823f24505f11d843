"""The one TOML settings file: every key, its unit, range and default.

Unknown keys are refused with the file, the key and what is allowed, before any
port opens. Secrets are never values here, only paths of files. The docstrings
below are the reference: `docs/settings.md` is generated from them.
"""

import hashlib
import os
import tomllib
from pathlib import Path
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from appliance.domain.document import FindingKind
from appliance.domain.hsm import DigestAlgorithm, KeyAlgorithm, KeyMode
from appliance.domain.levels import SignatureProfile
from appliance.domain.stamp_details import CODE_LENGTH, CONTENT_AT_MOST
from appliance.domain.vocab import Environment, SignatureLevel, TimestampPolicy

_ORIGIN = r"^https?://[a-z0-9.-]+(:[0-9]{1,5})?$"

FACES: Final[tuple[str, ...]] = ("api", "embed", "admin")
"""Roles that answer HTTP, each on a listener of its own (`web.listen_…`)."""

Seconds = Annotated[float, Field(gt=0, le=86400)]


class SettingsError(Exception):
    """The settings file cannot be used; the text names file, key and remedy."""


class _Section(BaseModel):
    """A table of the file: frozen, and no key that is not listed."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True
    )


class WebSettings(_Section):
    """Addresses and limits of the HTTP faces."""

    base_url: str = Field(default="http://127.0.0.1:8080", pattern=r"^https?://[^/]+$")
    """Public address of the REST API, without a final slash ({base_url})."""
    web_url: str = Field(default="", pattern=r"^(https?://[^/]+)?$")
    """Public address of the session API ({web_url}), served by the `api` role
    too; the default is `base_url`."""
    iframe_url: str = Field(default="http://localhost:8081", pattern=_ORIGIN)
    """Origin of the iframe ({iframe_url}): no other address here may have it."""
    admin_url: str = Field(default="http://127.0.0.1:8082", pattern=_ORIGIN)
    """Origin of the console; best reachable from inside alone."""
    listen_api: str = "127.0.0.1:8080"
    """Address that the `api` role listens on: `host:port` or `unix:/path`."""
    listen_embed: str = "127.0.0.1:8081"
    """Address that the `embed` role listens on; empty: `rubrica up` runs none."""
    listen_admin: str = "127.0.0.1:8082"
    """Address that the `admin` role listens on; empty: `rubrica up` runs none."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may call the REST API, exact (`https://a.example`)."""
    body_limit_bytes: int = Field(default=1_048_576, ge=1024, le=104_857_600)
    """Largest JSON body, in bytes."""
    body_timeout_s: Seconds = 15
    """Longest a body may take to arrive, in seconds."""
    graceful_s: Seconds = 30
    """Longest that running calls are waited for at a stop, in seconds."""
    backlog: int = Field(default=512, ge=16, le=65535)
    """Connections that may wait to be accepted."""

    def listen(self, face: str) -> str:
        """Where a face listens.

        Args:
            face: one of `FACES`.
        """
        addresses = (self.listen_api, self.listen_embed, self.listen_admin)
        return dict(zip(FACES, addresses, strict=True))[face]

    @model_validator(mode="after")
    def _web_url_is_base_url(self) -> Self:
        if not self.web_url:
            # Once, before anybody sees it: the model is frozen from here on.
            object.__setattr__(self, "web_url", self.base_url)
        return self

    @model_validator(mode="after")
    def _frame_has_its_own_origin(self) -> Self:
        # A page of the API or the console could reach into a frame of its origin.
        if self.iframe_url in {self.base_url, self.web_url, self.admin_url}:
            msg = "iframe_url: must be an origin of its own"
            raise ValueError(msg)
        return self


class DatabaseSettings(_Section):
    """Where the record of everything is."""

    url: str = "sqlite"
    """`sqlite` (a file in `data_dir`; for a trial) or
    `postgresql://user@host:port/name` (or `?host=/socket/folder`)."""
    password_file: Path | None = None
    """File with the PostgreSQL password; not for SQLite."""
    pool_size: int = Field(default=8, ge=1, le=100)
    """Connections a process keeps open (PostgreSQL), or readers (SQLite)."""
    busy_timeout_s: Seconds = 5
    """Longest that a SQLite writer waits for the other, in seconds."""


class RedisSettings(_Section):
    """The doorbell. Nothing is lost when it is away."""

    socket: Path | None = None
    """Unix socket; the default is `redis.sock` in `run_dir`, where
    `rubrica up` starts a server of its own."""
    url: str | None = None
    """`redis://host:port/0` or `rediss://…` of a server run by others; then
    `rubrica up` starts none."""
    command: str = "redis-server"
    """Program that `rubrica up` starts."""


class DocumentSettings(_Section):
    """Where PDFs are kept and how big they may be."""

    path: Path | None = None
    """Folder; the default is `documents` in `data_dir`."""
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
    per_session: int = Field(default=20, ge=1, le=1000)
    """Documents that one session of the frame may bring, one after the other."""


class TokenSettings(_Section):
    """One token of the HSM."""

    label: str
    """Its label."""
    pin_source: Literal["file", "credential", "environment", "prompt"] = "file"
    """Where its PIN is: `file` (see `pin_file`); `credential`, the systemd
    credential with the name of `pin_file`; `environment`, the variable
    `RUBRICA_PIN_` and the label in capitals, refused in PROD; `prompt`, asked for
    at the terminal, which only `rubrica hsm` can do."""
    pin_file: Path
    """File with its PIN, read once at the start of the worker."""


class ReplicaSettings(TokenSettings):
    """One more token behind the logical HSM "firma", with the same master keys."""

    module: Path | None = None
    """Its PKCS#11 module; the default is that of `hsm.firma`."""
    config: Path | None = None
    """Its module's own configuration file; the default is that of `hsm.firma`.
    A module has one: another configuration needs a module of its own."""


class HsmSettings(_Section):
    """The HSM (see `hsm_config/profiles`)."""

    profile: str = "softhsm2"
    """Name of a profile in `hsm_config/profiles`, or a path to one."""
    module: Path | None = None
    """PKCS#11 module; the default is the profile's first that exists."""
    firma: TokenSettings
    """Token of the users' keys."""
    pki: TokenSettings
    """Token of the CA's key, with another PIN."""
    replicas: tuple[ReplicaSettings, ...] = Field(default=(), max_length=14)
    """More tokens that hold what `firma` holds (see docs/hsm-faults.md). A worker
    uses any that is there; worker n prefers the n-th."""
    softhsm_conf: Path | None = None
    """The module's own configuration file, where the profile has a `config_env`
    (SoftHSM: `SOFTHSM2_CONF`)."""
    keep_alive_s: Seconds = 60
    """Time between two test signatures of an idle worker, in seconds."""
    call_limit_s: Seconds = 20
    """Longest that a call into the HSM may take, in seconds; a worker whose call
    takes longer is killed, and what it had in hand goes on elsewhere."""
    key_mode: KeyMode = KeyMode.WRAPPED
    """Where a new user's key is kept: `wrapped` (in the record, under the HSM's
    master key and the signing password) or `resident` (on the token)."""
    key_algorithm: KeyAlgorithm = KeyAlgorithm.RSA_2048
    """Kind of a new user's key."""
    signature_scheme: Literal["auto", "rsa-pss"] = "auto"
    """How RSA keys sign: `auto` is PKCS#1 v1.5. EC keys sign by ECDSA."""
    activation_dir: Path | None = None
    """Folder of the activation keys' private halves, on tmpfs; the default is
    one under `/dev/shm` that is named after `data_dir`."""

    @model_validator(mode="after")
    def _members_hold_the_same(self) -> Self:
        if self.replicas and self.key_mode is KeyMode.RESIDENT:
            msg = "replicas: a resident key is on one token alone; wrapped keys go"
            raise ValueError(msg)
        return self


class PkiSettings(_Section):
    """What the internal CA publishes. Each is signed anew at half of its time."""

    crl_validity_s: int = Field(default=604_800, ge=3600, le=2_592_000)
    """Time from a CRL's thisUpdate to its nextUpdate, in seconds."""
    ocsp_validity_s: int = Field(default=86_400, ge=600, le=604_800)
    """Time from an OCSP answer's thisUpdate to its nextUpdate, in seconds."""
    renew_days: int = Field(default=30, ge=0, le=365)
    """Days before its end that a certificate of the internal CA is renewed by
    itself, on the same key; 0: never."""
    requests_per_minute_address: int = Field(default=1200, ge=10, le=1_000_000)
    """Questions under `/pki/` a minute from one address, in each `api` process."""


class OutsideTsaSettings(_Section):
    """One timestamping authority outside of the installation."""

    url: str = Field(pattern=r"^https?://[^@\s/?#]+[^@\s#]*$")
    """Its address (RFC 3161 over HTTP), without a user name in it."""
    username: str | None = Field(default=None, pattern=r"^[^:\s]{1,128}$")
    """User name (HTTP Basic), where it wants one; only over https."""
    password_file: Path | None = None
    """File with its password, read by the chores worker."""
    policy: str | None = Field(default=None, pattern=r"^[0-2](\.[0-9]+)+$")
    """Policy to ask for, an object identifier; the default is its own choice."""
    ca_file: Path | None = None
    """Certificates (PEM) that its TLS is checked by; the default is the system's.
    Its timestamps are checked by the trust store, see docs/timestamps.md."""

    @model_validator(mode="after")
    def _password_is_not_told_to_all(self) -> Self:
        if (self.username is None) is not (self.password_file is None):
            msg = "username and password_file come together"
            raise ValueError(msg)
        if self.username is not None and not self.url.startswith("https:"):
            msg = "username: only over https"
            raise ValueError(msg)
        return self


class TimestampSettings(_Section):
    """Timestamps (RFC 3161): who makes them, and for whom."""

    outside: tuple[OutsideTsaSettings, ...] = Field(default=(), max_length=8)
    """Authorities outside, asked in this order until one answers well: so far by
    `rubrica timestamps try` alone; documents are stamped by the internal one."""
    proxy: str | None = Field(default=None, pattern=r"^http://[^@\s/?#]+/?$")
    """HTTP proxy by which the ones outside are reached."""
    timeout_s: float = Field(default=10, gt=0, le=60)
    """Longest that one of them may take to answer, in seconds."""
    rest_s: Seconds = 300
    """Time for which one that failed is asked last, in seconds."""
    accuracy_s: int = Field(default=1, ge=1, le=60)
    """How far from the true time the clocks of signing hosts may be, in seconds:
    what the internal authority's timestamps say of themselves."""
    public: bool = False
    """Whether the internal authority stamps for anybody, at `POST /tsa`."""
    requests_per_minute_address: int = Field(default=60, ge=1, le=1_000_000)
    """Questions to `/tsa` a minute from one address, in each `api` process."""


class SecretSettings(_Section):
    """Files with 32 random bytes in hex, or versions of such; mode 0600.

    `docs/rotation.md` has their form.
    """

    pepper_file: Path
    """Pepper of signing passwords; read by `api` (and `embed`) alone."""
    data_key_file: Path
    """Key over TOTP seeds, JWT keys, e-mail addresses; read by `api`, `embed` and
    `admin` alone."""
    document_key_file: Path | None = None
    """Key over the keys of integrators' documents; read by all roles but `sandbox`.
    The default is `document-key` beside `data_key_file`."""
    lookup_key_file: Path
    """Key of the HMACs by which tokens and addresses are looked up."""


class AuthSettings(_Section):
    """Sign-in and tokens."""

    issuer: str | None = None
    """`iss` of our tokens; the default is `web.base_url`."""
    audience: str | None = None
    """`aud` of our tokens; the default is `web.base_url`."""
    token_ttl_s: int = Field(default=900, ge=60, le=900)
    """Lifetime of an access token, in seconds."""
    login_ttl_s: int = Field(default=300, ge=30, le=600)
    """Time between password and code, in seconds."""
    factor_age_s: int = Field(default=28_800, ge=60, le=86_400)
    """Oldest second factor that may still sign, in seconds."""
    login_per_minute_address: int = Field(default=10, ge=1, le=10_000)
    """Sign-in attempts a minute from one address."""
    login_per_minute_account: int = Field(default=5, ge=1, le=10_000)
    """Sign-in attempts a minute on one account."""
    enrolment_ttl_s: int = Field(default=259_200, ge=3600, le=2_592_000)
    """Lifetime of an enrolment link, in seconds."""


class SigningSettings(_Section):
    """The flow of one signature (design §3)."""

    wait_s: Seconds = 20
    """Longest that a call waits for its result before 202, in seconds."""
    claim_s: Seconds = 60
    """Time in which an activation must be claimed, in seconds."""
    key_s: Seconds = 60
    """Time for the key phase after the claim, plus 1 s an item, in seconds."""
    finish_s: Seconds = 600
    """Time for the finish phase, in seconds."""
    lease_s: Seconds = 10
    """A worker's lease on an activation, in seconds."""
    renew_s: Seconds = 3
    """Time between renewals of a lease, in seconds."""
    poll_s: Seconds = 2
    """Time between looks for work when nobody rings, in seconds."""
    concurrency: int = Field(default=4, ge=1, le=64)
    """Activations that one worker has in hand at a time."""
    workers: int = Field(default=2, ge=1, le=64)
    """Signing workers that `rubrica up` runs."""
    wrong_passwords: int = Field(default=10, ge=3, le=100)
    """Wrong signing passwords that lock."""
    slot_wait_s: Seconds = 5
    """Longest wait for a free attempt slot, in seconds."""
    link_ttl_s: int = Field(default=900, ge=60, le=604_800)
    """Lifetime of `clave` in a download link, in seconds."""


class ProfileSettings(_Section):
    """How signatures are made, unless an integrator or a request says otherwise."""

    level: SignatureLevel | None = None
    """`B-B`, `B-T`, `B-LT` or `B-LTA`; the default is `B-LT` in a trial, else `B-T`."""
    timestamp_policy: TimestampPolicy = TimestampPolicy.PREFERRED
    """What becomes of a signature while no timestamp or no revocation data can be
    had: `required`, it waits up to `signing.finish_s` and then fails; `preferred`, it
    is handed out at the level reached and raised later."""
    digest: DigestAlgorithm = DigestAlgorithm.SHA256
    """`sha256`, `sha384` or `sha512`, of RSA keys; a curve has its own."""
    renew_days: int = Field(default=180, ge=1, le=1095)
    """Days before the end of a B-LTA document's newest timestamp's certificate that
    the document is stamped anew."""


class StampSettings(_Section):
    """What visible signatures show, where the command does not say it."""

    mask_cuil: bool = False
    """Show three digits of the CUIL alone. The certificate has all of them."""
    qr: bool = False
    """Show a QR code that leads to the page of the signature."""
    verify_url: str = Field(
        default="", max_length=160, pattern=r"^(https?://[!-~]*[A-Za-z0-9])?$"
    )
    """Where the page of a signature is, without a final slash and without its code;
    the default is `/verificar` under `web.base_url`."""
    looks_per_minute_address: int = Field(default=60, ge=1, le=1_000_000)
    """Looks at such pages a minute from one address, in each `api` process."""


class SandboxSettings(_Section):
    """Limits within which one PDF is looked at."""

    socket: Path | None = None
    """Unix socket; the default is `sandbox.sock` in `run_dir`."""
    memory_bytes: int = Field(default=1_073_741_824, ge=268_435_456)
    """Address space of one job, in bytes."""
    cpu_s: int = Field(default=10, ge=1, le=120)
    """CPU time of one job, in seconds."""
    wall_s: Seconds = 20
    """Wall time of one job, in seconds."""
    jobs: int = Field(default=4, ge=1, le=64)
    """Jobs that run at the same time; more wait."""


class LogSettings(_Section):
    """The log."""

    format: Literal["text", "json"] = "text"
    """`text` for people, `json` for machines; one event a line."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least level that is written."""


class Settings(_Section):
    """The whole file. Relative paths count from the file's own folder."""

    environment: Environment = Environment.PREPROD
    """`PREPROD` or `PROD`; tokens and keys of one are invalid on the other."""
    trial: bool = False
    """A trial: the demo CA "DEMO SIN VALIDEZ" certifies; refused in PROD."""
    installation: str = Field(
        default="rubrica", pattern=r"^[A-Za-z0-9ÁÉÍÓÚÑáéíóúñ .-]{1,60}$"
    )
    """Name of the installation, shown in the CA's name. Every user's key is bound to
    it: under another name no key opens."""
    data_dir: Path
    """Folder of what must last."""
    run_dir: Path
    """Short private folder of sockets and locks (a path of up to 80 bytes)."""
    fonts_dir: Path = Path("/usr/share/fonts/truetype/liberation2")
    """Folder of the Liberation 2 fonts."""
    event_prefix: str = Field(default="svc", pattern=r"^[a-z][a-z0-9-]{0,31}$")
    """Prefix of the iframe's messages (`svc.ready` …)."""
    web: WebSettings = WebSettings()
    database: DatabaseSettings = DatabaseSettings()
    redis: RedisSettings = RedisSettings()
    documents: DocumentSettings = DocumentSettings()
    hsm: HsmSettings
    pki: PkiSettings = PkiSettings()
    timestamps: TimestampSettings = TimestampSettings()
    secrets: SecretSettings
    auth: AuthSettings = AuthSettings()
    signing: SigningSettings = SigningSettings()
    profile: ProfileSettings = ProfileSettings()
    stamp: StampSettings = StampSettings()
    sandbox: SandboxSettings = SandboxSettings()
    log: LogSettings = LogSettings()

    @model_validator(mode="after")
    def _trial_is_not_production(self) -> Self:
        if self.trial and self.environment is Environment.PROD:
            msg = "trial: a trial cannot be PROD"
            raise ValueError(msg)
        return self

    @property
    def signature_profile(self) -> SignatureProfile:
        """How signatures are made here (decisions "level")."""
        default = SignatureLevel.B_LT if self.trial else SignatureLevel.B_T
        return SignatureProfile(
            self.profile.level or default,
            self.profile.timestamp_policy,
            self.profile.digest,
        )

    @property
    def verify_url(self) -> str:
        """Where the page of a signature is, without its code."""
        return self.stamp.verify_url or f"{self.web.base_url}/verificar"

    @model_validator(mode="after")
    def _address_fits_into_a_code(self) -> Self:
        if len(self.verify_url) + 1 + CODE_LENGTH > CONTENT_AT_MOST:
            msg = "stamp.verify_url: too long for a QR code"
            raise ValueError(msg)
        if not self.verify_url.isascii():
            msg = "stamp.verify_url: its host must be written in ASCII (xn--…)"
            raise ValueError(msg)
        return self

    @property
    def sandbox_socket(self) -> Path:
        """Where the sandbox listens."""
        return self.sandbox.socket or self.run_dir / "sandbox.sock"

    @property
    def activation_dir(self) -> Path:
        """Where a signing host keeps its activation keys."""
        if self.hsm.activation_dir is not None:
            return self.hsm.activation_dir
        name = hashlib.sha256(os.fsencode(self.data_dir.absolute())).hexdigest()[:16]
        return Path(f"/dev/shm/rubrica-{name}")  # noqa: S108 (checked when it is used)

    @property
    def worker_identity_file(self) -> Path:
        """Public keys of the HSM's worker identities, PEM; fronts believe no other."""
        return self.data_dir / "pki" / "worker-identity.pem"

    @property
    def document_key_file(self) -> Path:
        """Where the key over the keys of integrators' documents is kept."""
        secrets = self.secrets
        beside = secrets.data_key_file.with_name("document-key")
        return secrets.document_key_file or beside

    @property
    def documents_dir(self) -> Path:
        """Where PDFs are kept."""
        return self.documents.path or self.data_dir / "documents"

    @property
    def root_file(self) -> Path:
        """Certificate of the internal CA's root, PEM: what a verifier trusts."""
        return self.data_dir / "pki" / "root.pem"

    @property
    def ca_file(self) -> Path:
        """Certificate of the internal CA that issues, PEM."""
        return self.data_dir / "pki" / "ca.pem"

    @property
    def redis_socket(self) -> Path:
        """Unix socket of the doorbell when no `redis.url` is set."""
        return self.redis.socket or self.run_dir / "redis.sock"


def load_settings(path: Path) -> Settings:
    """Read and check the settings file.

    Raises:
        SettingsError: not readable, not TOML, an unknown key or a bad value.
    """
    try:
        with path.open("rb") as file:
            raw = tomllib.load(file)
    except OSError as exc:
        msg = f"{path}: cannot be read ({exc.strerror})"
        raise SettingsError(msg) from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        msg = f"{path}: not valid TOML ({exc})"
        raise SettingsError(msg) from exc
    try:
        settings = Settings.model_validate(_absolute(raw, path.resolve().parent))
    except ValidationError as exc:
        raise SettingsError(_explain(path, exc)) from exc
    return settings


_PATH_KEYS = frozenset(
    {
        "data_dir",
        "run_dir",
        "fonts_dir",
        "password_file",
        "socket",
        "path",
        "module",
        "pin_file",
        "softhsm_conf",
        "activation_dir",
        "config",
        "pepper_file",
        "data_key_file",
        "document_key_file",
        "lookup_key_file",
        "ca_file",
    }
)


def _absolute(table: dict[str, object], folder: Path) -> dict[str, object]:
    """Make every relative path count from the file's folder."""
    out: dict[str, object] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            out[key] = _absolute(value, folder)
        elif isinstance(value, list):
            out[key] = [
                _absolute(one, folder) if isinstance(one, dict) else one
                for one in value
            ]
        elif key in _PATH_KEYS and isinstance(value, str):
            out[key] = str(folder / value)
        else:
            out[key] = value
    return out


def _explain(path: Path, exc: ValidationError) -> str:
    """One line for each fault: file, key, and what is allowed."""
    lines = []
    for error in exc.errors():
        key = ".".join(str(part) for part in error["loc"]) or "(file)"
        if error["type"] == "extra_forbidden":
            allowed = ", ".join(sorted(_keys_beside(error["loc"])))
            lines.append(f"{path}: {key}: unknown key; allowed here: {allowed}")
        else:
            lines.append(f"{path}: {key}: {error['msg']}")
    return "\n".join(lines)


def _keys_beside(loc: tuple[int | str, ...]) -> list[str]:
    """The keys that the table holding `loc` may have."""
    model: type[BaseModel] = Settings
    for part in loc[:-1]:
        if isinstance(part, int):
            continue  # a place in a list, whose elements' model it is already
        annotation = model.model_fields[part].annotation
        for kind in (annotation, *get_args(annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                model = kind
    return list(model.model_fields)
