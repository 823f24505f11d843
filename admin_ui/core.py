"""What the console needs of the core."""

from typing import cast

from quart import current_app

from appliance.bootstrap import AdminServiceRegistry

KEY = "rubrica.console"
"""Where the application keeps it."""


def core() -> AdminServiceRegistry:
    """The core of the application that serves the present request."""
    return cast("AdminServiceRegistry", current_app.extensions[KEY])
