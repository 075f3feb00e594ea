#!/usr/bin/env python3
# build_wheel.py - the wheel that carries libprairie.so.
# SPDX-License-Identifier: MIT
"""Usage: build_wheel.py LIBRARY FOLDER      prints the file that it wrote

A wheel is an archive of the package, its description, and a list of both with their sums; nothing is compiled, so nothing
else is needed to make one. Its tag says which C library the library wants at least. The same input makes the same file.
"""
import base64
import hashlib
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAME = "prairie_malloc"
DESCRIPTION = """Metadata-Version: 2.1
Name: prairie-malloc
Version: {version}
Summary: The prairie memory allocator under Python programs, and what it says of itself
License: MIT
Requires-Python: >=3.8
Description-Content-Type: text/markdown

"""
WHEEL = """Wheel-Version: 1.0
Generator: prairie
Root-Is-Purelib: false
Tag: {tag}
"""


def version_of_header():
    text = (HERE.parent / "include/prairie/prairie.h").read_text()
    return re.search(r'#define PRAIRIE_VERSION "([0-9.]+)"', text).group(1)


def oldest_c_library(library):
    """As manylinux writes it: the newest version of a name of glibc that the library asks for. Packed relocations have a name
    without a version, which glibc has known since 2.36."""
    listed = subprocess.run(["readelf", "-VW", library], capture_output=True, text=True, check=True).stdout
    versions = [tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_(\d+\.\d+)", listed)]
    packed = [(2, 36)] if "GLIBC_ABI_DT_RELR" in listed else []
    return max(versions + packed + [(2, 17)])


def write_wheel(library, folder):
    version = version_of_header()
    least = oldest_c_library(library)
    tag = f"py3-none-manylinux_{least[0]}_{least[1]}_{platform.machine()}"
    about = f"{NAME}-{version}.dist-info"
    files = {f"prairie/{path.name}": path.read_bytes() for path in sorted((HERE / "prairie").glob("*.py"))}
    files["prairie/libprairie.so"] = Path(library).read_bytes()
    files["prairie/libprairie.so.version"] = (version + "\n").encode()
    files[f"{about}/METADATA"] = (DESCRIPTION.format(version=version) + (HERE / "README.md").read_text()).encode()
    files[f"{about}/WHEEL"] = WHEEL.format(tag=tag).encode()
    files[f"{about}/licenses/LICENSE"] = (HERE.parent / "LICENSE").read_bytes()
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{about}/RECORD"] = (record + f"{about}/RECORD,,\n").encode()

    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{NAME}-{version}-{tag}.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            wheel.writestr(entry, content)
    return target


def main():
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    print(write_wheel(sys.argv[1], Path(sys.argv[2])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
