"""`[secrets]` and `[auth]`: key files, sign-in and tokens."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from appliance.settings.named_files import (
    FRONTS,
    PASSWORDS,
    SEALING,
    SERVING,
    Content,
    Holds,
)
from appliance.settings.section import Section


class SecretSettings(Section):
    """Files with 32 random bytes in hex, or versions of such; mode 0600.

    `docs/rotation.md` has their form.
    """

    pepper_file: Annotated[Path, Holds(Content.KEY, PASSWORDS)]
    """Pepper of signing passwords; read by `api` (and `embed`) alone."""
    data_key_file: Annotated[Path, Holds(Content.KEY, SEALING)]
    """Key over TOTP seeds, JWT keys, e-mail addresses; read by `api`, `embed`,
    `admin` and `chores` alone."""
    document_key_file: Annotated[
        Path | None, Holds(Content.KEY, SERVING, "document_key_file")
    ] = None
    """Key over the keys of integrators' documents; read by all roles but `sandbox`.
    The default is `document-key` beside `data_key_file`."""
    lookup_key_file: Annotated[Path, Holds(Content.KEY, FRONTS)]
    """Key of the HMACs by which tokens and addresses are looked up."""


class AuthSettings(Section):
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
    """Wrong tries a minute from one address, of each kind; of IPv6 this is for a /64,
    a /56 may have twice and a /48 four times as many."""
    login_per_minute_account: int = Field(default=5, ge=1, le=10_000)
    """Wrong tries a minute on one account from one address."""
    wrong_per_hour_account: int = Field(default=30, ge=1, le=10_000)
    """Wrong tries an hour on one account from anywhere; beyond them only addresses
    from which it was signed in to of late are let through."""
    wrong_per_day_account: int = Field(default=100, ge=1, le=100_000)
    """The same for a day."""
    known_address_days: int = Field(default=30, ge=1, le=365)
    """Days that such an address is remembered."""
    codes_per_session: int = Field(default=10, ge=3, le=100)
    """Codes that one session of the frame may try."""
    enrolment_ttl_s: int = Field(default=259_200, ge=3600, le=2_592_000)
    """Lifetime of an enrolment link, in seconds."""
