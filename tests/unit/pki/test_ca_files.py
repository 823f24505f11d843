"""Certificates of the installation's own CA, by files that only their owner writes."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.pki.ca_files import read_certificate
from tests.support.pki.outside_ca import OutsideCa, bundle, der


def test_root_that_others_may_write_is_not_relied_on(tmp_path: Path) -> None:
    """Nor one that is damaged; a missing one is none yet."""
    root = OutsideCa(datetime.now(UTC)).root
    path = tmp_path / "root.pem"
    assert read_certificate(path) is None
    path.write_bytes(bundle(root))
    path.chmod(0o644)
    assert read_certificate(path) == der(root)

    for content, mode in ((bundle(root), 0o664), (bundle(root), 0o646), (b"", 0o644)):
        path.write_bytes(content)
        path.chmod(mode)
        with pytest.raises(ApplianceError) as caught:
            read_certificate(path)
        assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
