"""The demo integrator's site of a test, beside a service that plays the appliance."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from appliance.web import sdk
from embed.demo.config import read_config
from embed.demo.desk import Desk
from embed.demo.host import DemoHost
from tests.support.browsers.host_page import POLL_S, Reply
from tests.support.faces.fake_frame import API_KEY, INTEGRATOR, FakeService
from tests.support.processes.scratch import free_port

CUIL = "20-26756539-3"
EMAIL = "bruno@demo.example"


@dataclass(frozen=True, slots=True)
class DemoSite:
    """A running demo site and the service that it talks to."""

    url: str
    service: FakeService
    key_file: Path
    config_file: Path


def serve_sdk(service: FakeService) -> None:
    """Have a played service serve the SDK's module, as the appliance does."""
    built = sdk.built()
    assert built is not None
    module = built.files[sdk.MODULE]
    allow = {"Access-Control-Allow-Origin": "*"}
    service.on(
        "GET",
        f"/sdk/{sdk.MODULE}",
        lambda _: Reply(module.content, module.media_type, headers=allow),
    )


@contextmanager
def running_demo_site(folder: Path, **play: Any) -> Iterator[DemoSite]:
    """Run the demo site on 127.0.0.1 and a played service on localhost.

    Args:
        folder: private; configuration and key go there.
        **play: how the service behaves, see `FakeService`; `frame_src` overrides
            the frame's address in the site's configuration, `sample` is a PDF,
            `desk` has a trial's codes, `is_shared` says that a TLS front stands
            before the site.
    """
    listen = f"127.0.0.1:{free_port()}"
    frame_src = play.pop("frame_src", None)
    sample: bytes | None = play.pop("sample", None)
    desk: Desk | None = play.pop("desk", None)
    is_shared: bool = play.pop("is_shared", False)
    with FakeService(f"http://{listen}", **play) as service:
        key_file = folder / "demo-api-key"
        key_file.write_text(f"{API_KEY}\n")
        if sample is not None:
            (folder / "contrato.pdf").write_bytes(sample)
        config_file = folder / "demo-host.json"
        config_file.write_text(
            json.dumps(
                {
                    "listen": listen,
                    "web_url": service.web_url,
                    "iframe_url": frame_src or service.iframe_url,
                    "integrator_id": INTEGRATOR,
                    "api_key_file": key_file.name,
                    "event_prefix": service.play["prefix"],
                    "download_origins": [service.web_url, service.iframe_url],
                    "public_origin": f"http://{listen}" if is_shared else "",
                    "sample": "contrato.pdf" if sample is not None else None,
                    "user": {"cuil": CUIL, "email": EMAIL, "name": "Bruno Díaz"},
                }
            )
        )
        serve_sdk(service)
        server = DemoHost(read_config(config_file), quiet=True, desk=desk)
        thread = threading.Thread(
            target=server.serve_forever, args=(POLL_S,), daemon=True
        )
        thread.start()
        try:
            yield DemoSite(f"http://{listen}/", service, key_file, config_file)
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
