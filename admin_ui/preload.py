"""What `rubrica up` prepares once, before it forks the roles that share it."""

from admin_ui import words
from admin_ui.app import page_blueprints
from appliance.settings import Settings
from appliance.system.late_imports import load_late


def prepare_console(settings: Settings) -> None:
    """Import every page, and read all that words and numbers are made of."""
    del settings
    load_late(["jinja2.ext"])
    words.load()
    for _ in page_blueprints():
        pass
