"""Which PKCS#11 module is loaded, and what is said where it cannot be.

Source: docs/installing.md, "Another HSM than SoftHSM".
"""

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from appliance.settings import HsmSettings, SettingsError
from hsm_config.pkcs11.module import module_path
from hsm_config.profile import load_profile


def test_module_that_this_user_may_not_see_is_a_fault_of_the_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one in a folder of the maker's group that the workers' user is not in."""
    profile = load_profile("softhsm2")
    hsm = HsmSettings.model_construct(module=Path("/usr/lib/hsm/libhsm.so"))

    def refuse(_: Path) -> NoReturn:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "is_file", refuse)

    with pytest.raises(SettingsError, match=r"libhsm\.so: cannot be read \(Perm.*let"):
        module_path(hsm, profile)
