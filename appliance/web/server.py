"""How every face is served: Hypercorn on a listener that is bound already."""

import logging
import socket

from hypercorn.config import Config

from appliance.settings import Settings


def hypercorn_config(settings: Settings, listener: socket.socket) -> Config:
    """Hypercorn on an inherited listener, with our limits."""
    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.graceful_timeout = settings.web.graceful_s
    config.shutdown_timeout = settings.web.graceful_s
    config.keep_alive_timeout = 30
    config.read_timeout = None
    config.include_server_header = False
    config.backlog = settings.web.backlog
    config.h11_max_incomplete_size = 32 * 1024
    config.accesslog = None
    # Ours, which writes as all other loggers do; Hypercorn's own adds a handler.
    config.errorlog = logging.getLogger("hypercorn.error")
    return config
