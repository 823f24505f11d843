"""What libraries import when they first need it, imported as a role starts.

    load_late(FACES)

While the package is upgraded, its files are replaced under the roles that still run.
What one of them loaded from there on would be the next version's, or missing: so a
role holds all that it needs before it says that it is ready; `rubrica up` imports it
once, before it forks its roles. Templates, catalogues and what browsers load are read
at the start too, each where it is used; the sandbox's template does every kind of job
once (`worker.sandbox.prewarm`).

`tests/e2e/journeys/test_separate_users.py` takes the files away from running roles,
and shows by what fails what is lacking here.
"""

import codecs
import encodings
import importlib
import pkgutil
from collections.abc import Iterable
from typing import Final

_SHARED: Final = (
    # Codecs of the standard library, on first use.
    "encodings.ascii",
    "encodings.idna",
    "encodings.latin_1",
    "encodings.unicode_escape",
    "encodings.utf_16_be",
    "encodings.utf_16_le",
    "encodings.utf_8_sig",
    # cryptography: with the first signature that is checked by an EC key.
    "cryptography.hazmat.backends.openssl.backend",
)
FACES: Final = (
    *_SHARED,
    # Jinja: with the first fault in a template, which it would hide.
    "jinja2.debug",
)
"""For roles that serve HTTP."""
WORKERS: Final = (
    *_SHARED,
    # idna, for aiohttp: with the first host whose name has other letters.
    "idna.uts46data",
    # pyHanko: with the first document that has such streams or metadata.
    "pyhanko.pdf_utils.crypt._saslprep",
    "pyhanko.pdf_utils.crypt.pdfmac",
    "pyhanko.pdf_utils.filters",
    "pyhanko.pdf_utils.metadata.xmp_xml",
)
"""For `signing` and `chores`."""


def load_late(names: Iterable[str]) -> None:
    """Import modules.

    Args:
        names: of them, one of the lists above.
    """
    for name in names:
        importlib.import_module(name)


def load_codecs() -> None:
    """Import and look up every codec of the standard library.

    The codecs of Windows (`mbcs`, `oem`) are left out where there are none. All of
    them take 4 MB and 30 ms.
    """
    for module in pkgutil.iter_modules(encodings.__path__):
        try:
            importlib.import_module(f"encodings.{module.name}")
            codecs.lookup(module.name)
        except (ImportError, LookupError):
            # Of another system, or no codec (`encodings.aliases`).
            continue
