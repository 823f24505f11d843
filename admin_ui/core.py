"""What the console needs of the core."""

from typing import cast

from quart import current_app

from appliance.bootstrap import AdminFront

KEY = "rubrica.console"
"""Where the application keeps it."""


def core() -> AdminFront:
    """The core of the application that serves the present request."""
    return cast("AdminFront", current_app.extensions[KEY])
