"""The one TOML settings file: every key, its unit, range and default.

Unknown keys are refused with the file, the key and what is allowed, before any
port opens. Secrets are never values here, only paths of files. The docstrings of
the tables' models are the reference: `docs/settings.md` is generated from them.
"""

from appliance.settings.access import AuthSettings, SecretSettings
from appliance.settings.coherence import Fault
from appliance.settings.documents import DocumentSettings, SandboxSettings
from appliance.settings.hsm import HsmSettings, ReplicaSettings, TokenSettings
from appliance.settings.integration import IntegrationSettings
from appliance.settings.loading import load_settings
from appliance.settings.mail import MailSettings
from appliance.settings.metrics import MetricsSettings
from appliance.settings.pki import (
    ExternalTsaSettings,
    PkiSettings,
    RevocationSettings,
    TimestampSettings,
)
from appliance.settings.root import (
    HELP_PATH,
    REVOCATION_PATH,
    LogSettings,
    Settings,
)
from appliance.settings.section import CommandError, SettingsError
from appliance.settings.signing import ProfileSettings, SigningSettings, StampSettings
from appliance.settings.stores import DatabaseSettings, RedisSettings
from appliance.settings.toml_file import faults_in, read_toml, refuse
from appliance.settings.web import FACES, METRICS, WebSettings
from appliance.settings.webhooks import WebhookSettings

__all__ = [
    "FACES",
    "HELP_PATH",
    "METRICS",
    "REVOCATION_PATH",
    "AuthSettings",
    "CommandError",
    "DatabaseSettings",
    "DocumentSettings",
    "ExternalTsaSettings",
    "Fault",
    "HsmSettings",
    "IntegrationSettings",
    "LogSettings",
    "MailSettings",
    "MetricsSettings",
    "PkiSettings",
    "ProfileSettings",
    "RedisSettings",
    "ReplicaSettings",
    "RevocationSettings",
    "SandboxSettings",
    "SecretSettings",
    "Settings",
    "SettingsError",
    "SigningSettings",
    "StampSettings",
    "TimestampSettings",
    "TokenSettings",
    "WebSettings",
    "WebhookSettings",
    "faults_in",
    "load_settings",
    "read_toml",
    "refuse",
]
