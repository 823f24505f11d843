"""Progress of an installation's upgrade, as this machine knows it."""

from appliance.domain.signing.activation import ActivationFormat
from appliance.keys.activation_format import PinnedFormat
from appliance.settings import Settings


def is_upgrade_closed(settings: Settings) -> bool:
    """Return whether no process of the version before runs any more.

    An operator has said so on this machine (`rubrica upgrade --close`), or it never had
    one. No row of the database says it.

    Args:
        settings: of the installation.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`: the file that says so cannot be read.
    """
    oldest = PinnedFormat(settings.activation_format_file).oldest
    return oldest >= ActivationFormat.WHOLE
