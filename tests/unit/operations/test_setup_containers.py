"""The folder that containers start from: what of the settings is in it.

Source: tests/functional/installation/test_compose.py runs it whole.
"""

from pathlib import Path

import pytest

from appliance.operations.compose import place_in


@pytest.mark.parametrize(
    ("named", "there"),
    [
        ("/run/secrets/pepper", "secrets/pepper"),
        ("/run/secrets/database-api", "secrets/database-api"),
        ("/etc/rubrica/hsm/firma.pin", "hsm/firma.pin"),
        ("/etc/rubrica/database-ca.pem", "database-ca.pem"),
        ("/var/lib/rubrica/tokens/softhsm2.conf", None),
        ("/run/secrets/../../var/lib/rubrica/x", None),
        ("/etc/rubricas/x", None),
    ],
)
def test_what_containers_see_is_in_the_folder_or_in_a_volume(
    tmp_path: Path, named: str, there: str | None
) -> None:
    """By the places that compose.yaml mounts."""
    expected = None if there is None else tmp_path / there

    assert place_in(tmp_path, Path(named)) == expected
