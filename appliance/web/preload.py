"""What `rubrica up` prepares once, before it forks the roles that share it."""

from appliance.database.engines import load_driver
from appliance.domain.people.new_password import load_common
from appliance.settings import Settings
from appliance.system.late_imports import FACES, load_late
from appliance.web import i18n


def prepare_faces(settings: Settings) -> None:
    """Import what faces import as they start, and read what they say.

    Args:
        settings: of the installation.
    """
    load_late(FACES)
    load_common()
    load_driver(settings)
    i18n.load()
