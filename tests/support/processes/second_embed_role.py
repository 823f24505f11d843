"""A second `embed` process of a running appliance, with other settings.

with second_frame(appliance, event_prefix="firma") as url: ...
"""

import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.appliance.appliance import Appliance
from tests.support.installation.settings import toml
from tests.support.processes.plain_http import answers
from tests.support.processes.rubrica import start_rubrica
from tests.support.processes.scratch import free_port

_READY_S = 60.0


@contextmanager
def second_frame(appliance: Appliance, **top: str) -> Iterator[str]:
    """Run `rubrica serve embed` beside an appliance, over the same data.

    Args:
        appliance: whose settings are taken.
        **top: settings of the top level that differ.

    Yields:
        Origin of the frame.
    """
    port = free_port()
    tables = tomllib.loads(appliance.settings_file.read_text())
    here = appliance.iframe_url.rpartition(":")[2]
    for name in ("iframe_url", "listen_embed"):
        tables["web"][name] = tables["web"][name].replace(f":{here}", f":{port}")
    file = appliance.folder / f"embed-{port}.toml"
    file.write_text(toml(tables | top))
    url = f"http://localhost:{port}"
    command = ("--settings", str(file), "serve", "embed")
    log = appliance.folder / f"embed-{port}.log"
    with log.open("wb") as output:
        process = start_rubrica(*command, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + _READY_S
        while not answers(f"{url}/healthz"):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(30)
