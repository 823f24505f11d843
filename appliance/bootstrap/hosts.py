"""Which signing hosts this machine believes, by its own files."""

from appliance.keys.activation_format import PinnedFormat
from appliance.keys.host_belief import KeyBelief
from appliance.keys.worker_identities import PinnedIdentities
from appliance.secrets.admitted_hosts import AdmittedHosts
from appliance.settings import Settings


def open_belief(settings: Settings) -> KeyBelief:
    """Build what decides which activation keys count here.

    Args:
        settings: of the installation.
    """
    return KeyBelief(
        PinnedIdentities(settings.worker_identity_file),
        AdmittedHosts(settings.signing_hosts_file),
        PinnedFormat(settings.activation_format_file),
        settings.installation,
    )
