"""Build the SDKs: `python sdk/build.py [FOLDER]`.

FOLDER, by default the one that the appliance serves them from, gets the JavaScript
module, the classic script made of it, its types, both as an npm package, the wheel of
the Python client, and `index.json`, which names each with its size and its SRI. It is
put in place by one rename. The same sources give the same bytes; SOURCE_DATE_EPOCH is
the time that the packages' files bear.

It stands alone: the standard library and hatchling (requirements-build.lock), and
fetches nothing.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

SDK = Path(__file__).resolve().parent
SERVED = SDK.parent / "appliance" / "web" / "sdk" / "files"
_LICENSE = SDK.parent / "LICENSE"
_MODULE = "rubrica-embed.js"
_CLASSIC = "rubrica-embed.classic.js"
_TYPES = "rubrica-embed.d.ts"
_COMMENT = re.compile(r"^ *(?:/\*\*.*?\*/|//[^\n]*)\n", re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(
    r"^export ((?:async )?(?:class|function) (\w+))", re.MULTILINE | re.ASCII
)
_EPOCH = "1580601600"
"""2020-02-02, as hatchling has it."""


def main(arguments: list[str] | None = None) -> int:
    """Build all of it; the process's exit status."""
    parser = argparse.ArgumentParser(description="Build the SDKs.")
    parser.add_argument("folder", nargs="?", type=Path, default=SERVED)
    folder = parser.parse_args(arguments).folder.resolve()
    # Whoever serves them is somebody else.
    os.umask(0o022)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that the rename stays on one file system.
    with tempfile.TemporaryDirectory(prefix=".build-", dir=folder.parent) as work:
        made = Path(work) / "files"
        made.mkdir()
        for name, content in javascript().items():
            (made / name).write_bytes(content)
        wheel(made, Path(work) / "python")
        index = json.dumps(listed(made), indent=2) + "\n"
        (made / "index.json").write_text(index, encoding="utf-8")
        if folder.exists():
            folder.rename(Path(work) / "old")
        made.rename(folder)
    return 0


def javascript() -> dict[str, bytes]:
    """The JavaScript SDK's files, by name."""
    source = SDK / "javascript"
    package = json.loads((source / "package.json").read_text(encoding="utf-8"))
    version = package["version"]
    head = f"/*! {package['name']} {version} | {package['license']} */\n"
    code = _COMMENT.sub("", (source / _MODULE).read_text(encoding="utf-8")).lstrip()
    files = {
        _MODULE: (head + code).encode(),
        _CLASSIC: (head + classic(code)).encode(),
        _TYPES: (source / _TYPES).read_bytes(),
    }
    packed = files | {
        name: (source / name).read_bytes() for name in ("package.json", "README.md")
    }
    packed["LICENSE"] = _LICENSE.read_bytes()
    return files | {f"rubrica-embed-{version}.tgz": npm_package(packed)}


def classic(code: str) -> str:
    """A script for `<script src>` of a module that imports nothing.

    Args:
        code: exports classes and functions, each where it is defined.
    """
    names = [match[2] for match in _EXPORT.finditer(code)]
    inside = _EXPORT.sub(r"\1", code)
    told = ", ".join(names)
    return (
        f'(() => {{\n"use strict";\n{inside}globalThis.RubricaEmbed = {{ {told} }};\n'
        "})();\n"
    )


def npm_package(files: dict[str, bytes]) -> bytes:
    """What `npm install FILE.tgz` takes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            member.mtime = int(os.environ.get("SOURCE_DATE_EPOCH", _EPOCH))
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


def wheel(into: Path, work: Path) -> None:
    """Build the Python client's wheel from a copy, with the licence beside it."""
    # Lazily: who reads the functions above needs no hatchling.
    from hatchling.build import build_wheel  # noqa: PLC0415

    ignored = shutil.ignore_patterns("__pycache__", "dist", "*.egg-info")
    shutil.copytree(SDK / "python", work, ignore=ignored)
    shutil.copyfile(_LICENSE, work / "LICENSE")
    before = Path.cwd()
    os.chdir(work)
    try:
        build_wheel(str(into))
    finally:
        os.chdir(before)


def listed(folder: Path) -> dict[str, object]:
    """What `index.json` says: the version, and each file with its SRI."""
    project = (SDK / "python" / "pyproject.toml").read_text(encoding="utf-8")
    files = []
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        digest = base64.b64encode(hashlib.sha384(content).digest()).decode()
        files.append(
            {
                "nombre": path.name,
                "tamano": len(content),
                "integridad": f"sha384-{digest}",
            }
        )
    return {"version": tomllib.loads(project)["project"]["version"], "archivos": files}


if __name__ == "__main__":
    sys.exit(main())
