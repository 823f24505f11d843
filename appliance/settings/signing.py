"""`[signing]`, `[profile]` and `[stamp]`: how signatures are made and look."""

from pydantic import Field

from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.requests.levels import INTERNAL, TSA_NAMES_MOST
from appliance.domain.vocab import SignatureLevel, StampDesign, TimestampPolicy
from appliance.settings.section import Seconds, Section


class SigningSettings(Section):
    """The flow of one signature (design §3)."""

    wait_s: Seconds = 20
    """Longest that a call waits for its result before 202, in seconds."""
    claim_s: Seconds = Field(default=60, le=300)
    """Time in which an activation must be claimed, plus 1 s for each document of the
    same command before it, in seconds. For so long, and for `key_s`, its signing host
    can open what the signing password unlocked."""
    key_s: Seconds = Field(default=60, le=300)
    """Time for the key phase after the claim, plus 1 s an item, in seconds."""
    finish_s: Seconds = 600
    """Time for the finish phase, from the moment that the key was used for the last
    document of the command, in seconds."""
    lease_s: Seconds = 10
    """A worker's lease on an activation, in seconds."""
    renew_s: Seconds = 3
    """Time between renewals of a lease, in seconds."""
    poll_s: Seconds = 2
    """Time between looks for work when nobody rings, in seconds."""
    concurrency: int = Field(default=4, ge=1, le=64)
    """Single documents that one worker has in hand at a time, and as many batches (two
    at least)."""
    workers: int = Field(default=2, ge=1, le=64)
    """Signing workers that `rubrica up` runs."""
    wrong_passwords: int = Field(default=10, ge=3, le=100)
    """Wrong signing passwords that lock."""
    slot_wait_s: Seconds = 5
    """Longest wait for a free attempt slot, in seconds."""
    link_ttl_s: int = Field(default=900, ge=60, le=604_800)
    """Lifetime of `clave` in a download link, in seconds."""
    commands_per_minute: int = Field(default=120, ge=1, le=1_000_000)
    """Signing commands a minute of one person through the API, of one request or of
    several; what goes beyond is 429. Counted in Redis, while it is away by each
    process alone."""
    lists_per_minute: int = Field(default=300, ge=1, le=1_000_000)
    """Looks a minute of one person at the list of requests, counted alike."""
    idempotency_days: int = Field(default=30, ge=2, le=3650)
    """Days that an `Idempotency-Key` or `idemKey` stands for what it was first used
    for; then it may be used for something else."""


class ProfileSettings(Section):
    """How signatures are made, unless an integrator or a request says otherwise."""

    level: SignatureLevel | None = None
    """`B-B`, `B-T`, `B-LT` or `B-LTA`; the default is `B-LT` in a trial, else `B-T`."""
    timestamp_policy: TimestampPolicy = TimestampPolicy.PREFERRED
    """What becomes of a signature while no timestamp or no revocation data can be
    had: `required`, it waits up to `signing.finish_s` and then fails; `preferred`, it
    is handed out at the level reached and raised later."""
    digest: DigestAlgorithm = DigestAlgorithm.SHA256
    """`sha256`, `sha384` or `sha512`, of RSA keys; a curve has its own."""
    tsa: tuple[str, ...] = Field(
        default=INTERNAL, min_length=1, max_length=TSA_NAMES_MOST
    )
    """Who makes the timestamps: names of `timestamps.outside`, or `internal`; the
    first of them that answers well."""
    renew_days: int = Field(default=180, ge=1, le=1095)
    """Days before the end of a B-LTA document's newest timestamp's certificate that
    the document is stamped anew."""


class StampSettings(Section):
    """What visible signatures show, where the command does not say it."""

    design: StampDesign = StampDesign.CLASSIC
    """`card`: a stamp in sans serif, with the code of its page in letters, wherever
    neither the signer's call nor its request names a font, colour, size or style.
    `classic`: lines of one font in a box, everywhere."""
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
