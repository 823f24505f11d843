"""The services of the process that answers the present request."""

from typing import Final, cast

from quart import current_app

from appliance.bootstrap import ServiceRegistry

KEY: Final = "rubrica.core"
"""Where the application keeps them."""


def core() -> ServiceRegistry:
    """The services of the application that serves the present request."""
    return cast("ServiceRegistry", current_app.extensions[KEY])
