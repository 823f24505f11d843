"""What an empty signature field shows before anybody signs in it.

A signature takes the place of the field's look. Words in it would be read by the signer
and be gone from what is signed.
"""

import re
from typing import Final

# Right after a string, an array or a name, too.
_SHOWING: Final = re.compile(
    rb"(?:(?<![!-~])|(?<=[)>\]]))(?:T[jJ]|['\"]|Do|BI|sh)(?![!-~])"
)


def speaks(content: bytes) -> bool:
    """Return whether an appearance may show words or pictures, not lines alone.

    Args:
        content: decoded.
    """
    return _SHOWING.search(content) is not None
