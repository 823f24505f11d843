"""The whole file, and what follows from several of its keys."""

import hashlib
import os
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from appliance.domain.integrators.integrators import EVENT_PREFIX
from appliance.domain.requests.levels import INTERNAL_TSA, SignatureProfile
from appliance.domain.text.urls import read_address
from appliance.domain.vocab import Environment, SignatureLevel
from appliance.settings.access import AuthSettings, SecretSettings
from appliance.settings.coherence import ContradictionError, contradictions
from appliance.settings.documents import DocumentSettings, SandboxSettings
from appliance.settings.hsm import HsmSettings
from appliance.settings.integration import IntegrationSettings
from appliance.settings.mail import MailSettings, is_address
from appliance.settings.metrics import MetricsSettings
from appliance.settings.named_files import SIGNING, Content, Holds
from appliance.settings.pki import PkiSettings, RevocationSettings, TimestampSettings
from appliance.settings.section import Section
from appliance.settings.signing import ProfileSettings, SigningSettings, StampSettings
from appliance.settings.stores import DatabaseSettings, RedisSettings
from appliance.settings.web import METRICS, WebSettings
from appliance.settings.webhooks import WebhookSettings


class LogSettings(Section):
    """The log."""

    format: Literal["text", "json"] = "text"
    """`text` for people, `json` for machines; one event a line."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least level that is written."""


REVOCATION_PATH: Final = "/revocar"
"""Path of the page that revokes by PIN, below {base_url}."""
HELP_PATH: Final = "/ayuda"
"""Path of the page for people who cannot sign, below {web_url}."""


class Settings(Section):
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
    contact: str = Field(
        default="",
        max_length=120,
        pattern=r"^[^\x00-\x1f\x7f<>]*$",
        examples=["firma@example.org", "Mesa de ayuda, 0800 555 1234"],
    )
    """Whom people ask for help: a mail address, the address of a page, or a few words.
    Shown on public pages, in the iframe and in mails. Empty: they read that they ask
    those who run the installation."""
    data_dir: Path
    """Folder of what must last."""
    run_dir: Path
    """Short private folder of sockets and locks (a path of up to 80 bytes)."""
    fonts_dir: Annotated[Path, Holds(Content.FONTS, SIGNING)] = Path(
        "/usr/share/fonts/truetype/liberation2"
    )
    """Folder of the Liberation 2 fonts."""
    event_prefix: str = Field(default="svc", pattern=f"^{EVENT_PREFIX}$")
    """Prefix of the iframe's messages (`svc.ready` …)."""
    web: WebSettings = WebSettings()
    database: DatabaseSettings = DatabaseSettings()
    redis: RedisSettings = RedisSettings()
    documents: DocumentSettings = DocumentSettings()
    hsm: HsmSettings
    pki: PkiSettings = PkiSettings()
    timestamps: TimestampSettings = TimestampSettings()
    revocation: RevocationSettings = RevocationSettings()
    webhooks: WebhookSettings = WebhookSettings()
    secrets: SecretSettings
    auth: AuthSettings = AuthSettings()
    integration: IntegrationSettings = IntegrationSettings()
    signing: SigningSettings = SigningSettings()
    profile: ProfileSettings = ProfileSettings()
    stamp: StampSettings = StampSettings()
    sandbox: SandboxSettings = SandboxSettings()
    mail: MailSettings = MailSettings()
    log: LogSettings = LogSettings()
    metrics: MetricsSettings = MetricsSettings()

    @model_validator(mode="after")
    def _keys_fit_together(self) -> Self:
        if faults := list(contradictions(self)):
            raise ContradictionError(faults)
        return self

    @property
    def signature_profile(self) -> SignatureProfile:
        """How signatures are made here (decisions "level")."""
        default = SignatureLevel.B_LT if self.trial else SignatureLevel.B_T
        return SignatureProfile(
            self.profile.level or default,
            self.profile.timestamp_policy,
            self.profile.digest,
            self.profile.tsa,
        )

    @property
    def tsa_names(self) -> tuple[str, ...]:
        """Names that profiles may have for who makes timestamps."""
        return (INTERNAL_TSA, *(one.name for one in self.timestamps.outside))

    @property
    def webhook_schemes(self) -> frozenset[str]:
        """Schemes that addresses of webhooks may have."""
        told = self.webhooks.allow_http
        allows_http = self.environment is Environment.PREPROD if told is None else told
        return frozenset({"https", "http"} if allows_http else {"https"})

    @property
    def verify_url(self) -> str:
        """Where the page of a signature is, without its code."""
        return self.stamp.verify_url or f"{self.web.base_url}/verificar"

    @property
    def contact_href(self) -> str | None:
        """What the contact links to; None for words alone."""
        if is_address(self.contact):
            return f"mailto:{self.contact}"
        parts = None if " " in self.contact else read_address(self.contact)
        is_page = parts is not None and parts.scheme in {"http", "https"}
        return self.contact if is_page else None

    @property
    def revocation_url(self) -> str:
        """Where people revoke their certificate by their PIN."""
        return f"{self.web.base_url}{REVOCATION_PATH}"

    @property
    def help_url(self) -> str:
        """Where people who cannot sign ask for help."""
        return f"{self.web.web_url}{HELP_PATH}"

    def listen(self, role: str) -> str:
        """Where a role listens; empty: it does not.

        Args:
            role: one of `FACES`, or `metrics`.
        """
        return self.metrics.listen if role == METRICS else self.web.listen(role)

    @property
    def metrics_dir(self) -> Path:
        """Where each role has a folder for its figures."""
        return self.metrics.folder or self.run_dir / "metrics"

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
    def folder_id(self) -> str:
        """Id of the data folder on this machine, the same for each role; no secret.

        Two installations of one machine differ in it, a restored copy included. Empty
        while there is no data folder.
        """
        # Containers of one installation share this part of it, and not the rest.
        for folder in (self.worker_identity_file.parent, self.data_dir):
            try:
                found = folder.stat()
            except OSError:
                continue
            told = f"{found.st_dev}:{found.st_ino}".encode()
            return hashlib.sha256(told).hexdigest()[:32]
        return ""

    @property
    def worker_identity_file(self) -> Path:
        """Public keys of the HSM's worker identities, PEM; fronts believe no other."""
        return self.data_dir / "pki" / "worker-identity.pem"

    @property
    def activation_format_file(self) -> Path:
        """The oldest activation format that counts on this machine."""
        return self.data_dir / "pki" / "activation-format"

    @property
    def signing_hosts_file(self) -> Path:
        """Signing hosts that fronts admit, each by its own key; `rubrica hsm admit`."""
        return self.data_dir / "pki" / "signing-hosts"

    @property
    def host_key_file(self) -> Path:
        """Private key of this signing host (PEM, mode 0600); it is in no backup."""
        return self.data_dir / "host" / "host-key.pem"

    @property
    def document_key_file(self) -> Path:
        """Where the key over the keys of integrators' documents is kept."""
        secrets = self.secrets
        beside = secrets.data_key_file.with_name("document-key")
        return secrets.document_key_file or beside

    @property
    def documents_dir(self) -> Path:
        """Where PDFs are kept, unless they are in a bucket (`documents.url`)."""
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
    def outside_anchors_file(self) -> Path:
        """Roots of outside CAs, PEM, that this signing host believes for signers."""
        return self.data_dir / "pki" / "outside-anchors.pem"

    @property
    def redis_socket(self) -> Path:
        """Unix socket of the doorbell when no `redis.url` is set."""
        return self.redis.socket or self.run_dir / "redis.sock"
