"""A trial that does not run, told in words instead of as a refused connection."""

import http.client
from typing import Final

from appliance.cli.installation.listener import ask_api
from appliance.settings import Settings

STOPPED: Final = "the trial is stopped: start it with ./quickstart"
"""Said by commands that look at a running installation."""
_OWN_MACHINE: Final = "127.0.0.1:"
"""Address of a trial of `./quickstart`; one in a container has another."""


def is_stopped_trial(settings: Settings) -> bool:
    """Return whether this is a trial of `./quickstart` whose API does not listen.

    Args:
        settings: of the installation.
    """
    is_ours = settings.web.listen("api").startswith(_OWN_MACHINE)
    if not (settings.trial and is_ours):
        return False
    try:
        ask_api(settings, "/healthz")
    except ConnectionRefusedError:
        return True
    except (OSError, http.client.HTTPException):
        # Something listens there, be it another installation.
        return False
    return False
