"""What the disk says, in the appliance's codes."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from appliance.documents.encrypted_files import DamagedError
from appliance.domain.errors import ApplianceError, ErrorCode

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def named_faults() -> Iterator[None]:
    """Name what the disk and the files say.

    Raises:
        ApplianceError: `STORAGE_FULL`, `STORE_UNAVAILABLE`.
    """
    try:
        yield
    except OSError as exc:
        full = exc.errno in _FULL
        code = ErrorCode.STORAGE_FULL if full else ErrorCode.STORE_UNAVAILABLE
        raise ApplianceError(code) from exc
    except DamagedError as exc:
        raise ApplianceError(ErrorCode.STORE_UNAVAILABLE) from exc
