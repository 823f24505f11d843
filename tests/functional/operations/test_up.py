"""`rubrica up` beside one that runs."""

import httpx

from tests.support.appliance.appliance import Appliance
from tests.support.patience import CALL_S


def test_up_twice_on_one_folder_is_refused(appliance: Appliance) -> None:
    """Exit 78 and one line that names the lock; the first one runs on."""
    before = appliance.children("")
    # It waits for one that stops, and no longer than that one may take to stop.
    settings = appliance.settings_file.read_text("utf-8")
    second = appliance.folder / "impatient.toml"
    second.write_text(settings.replace("[web]\n", "[web]\ngraceful_s = 0.1\n"), "utf-8")

    done = appliance.rubrica("up", settings_file=second)

    assert done.returncode == 78
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{appliance.settings.run_dir / 'up.lock'}: another one")
    assert [each.pid for each in appliance.children("")] == [
        each.pid for each in before
    ]
    assert httpx.get(f"{appliance.base_url}/readyz", timeout=CALL_S).status_code == 200
