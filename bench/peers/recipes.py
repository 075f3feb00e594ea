# recipes.py - which allocators are built as peers, from what, and with which flags.
# SPDX-License-Identifier: MIT
"""Read by dev/peers, and by present.py for the lab and dev/micro. A Recipe says where the sources
are and what to do with them; versions are read from Cargo.lock, from the sources or from dpkg,
never written here, so that a label cannot lie.
"""
import platform
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

# The same for all that are compiled here; jemalloc's own configure chooses -O3 as well.
OPTIMIZE = ("-O3", "-DNDEBUG", "-fPIC", "-pthread")
# What a preloaded library may do, and a library that is linked statically has anyway: thread-local
# variables without a call, and no detour through the PLT for its own functions.
PRELOADED = ("-fvisibility=hidden", "-ftls-model=initial-exec")

# Variables that begin so change what an allocator does, or which one it is: a caller's own must not
# reach what is proved or measured. tool/prairie/src/environment.rs has the same names.
SETTINGS = ("LD_PRELOAD", "LD_DEBUG", "LD_AUDIT", "LD_BIND_NOW", "GLIBC_TUNABLES", "MALLOC_",
            "Malloc", "_RJEM_MALLOC_CONF", "MIMALLOC_", "TCMALLOC_", "SNMALLOC_", "PRAIRIE_")


def without_settings(environ):
    """A copy of the environment without those."""
    return {name: value for name, value in environ.items() if not name.startswith(SETTINGS)}


@dataclass(frozen=True)
class Recipe:
    name: str                          # on the command line and in peers.json
    title: str                         # the label is this and the version
    origin: str                        # a crate of Cargo.lock, or a Debian package
    version: Callable[[Path, str], str]     # from the sources' folder and the origin's version
    sources: Callable[[Path], list[str]] = lambda folder: []    # relative to that folder
    flags: tuple = ()                  # beside OPTIMIZE; {folder} is the folder of the sources
    links: tuple = ()                  # after the objects
    own_build: tuple = ()              # commands in a copy of the sources, instead of compiling
    product: str = ""                  # what own_build leaves there, or the package's library
    note: str = ""                     # what differs from the other peers
    env: dict = field(default_factory=dict)     # without these the peer is not what it says
    is_debian: bool = False
    is_optional: bool = False          # fails only for those who name it


def given(*names):
    """Sources under these names."""
    return lambda folder: list(names)


def from_origin(folder, origin_version):
    """Debian's 5.3.0-1 and 2.0.9+ds-2 are 5.3.0 and 2.0.9."""
    return re.match(r"[\d.]+", origin_version).group()


def from_build_metadata(folder, origin_version):
    """A crate's 0.7.1+5.3.1-0-g81034ce is 5.3.1."""
    return re.search(r"\+([\d.]+)", origin_version).group(1)


def mimalloc_version(branch):
    def version(folder, origin_version):
        header = (folder / f"c_src/mimalloc/{branch}/include/mimalloc.h").read_text()
        number = int(re.search(r"#define MI_MALLOC_VERSION (\d+)", header).group(1))
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    return version


def rpmalloc_version(folder, origin_version):
    return (folder / "rpmalloc/CHANGELOG").read_text().split()[0]


def tcmalloc_version(folder, origin_version):
    """Google's tcmalloc has no version; the day on which the crate took its sources stands in."""
    found = re.search(rf"^## \[{re.escape(origin_version)}\].* - (\d{{4}}-\d\d-\d\d)$",
                      (folder / "CHANGELOG.md").read_text(), re.M)
    return found.group(1)


def tcmalloc_sources(folder):
    """The crate's own list, and the file that defines malloc in place of the crate's bridges."""
    listed = re.findall(r'"(c_src/[^"]+\.(?:cc|S))"', (folder / "build.rs").read_text())
    return [name for name in listed if "_bridge" not in name] + [
        "c_src/tcmalloc/tcmalloc/tcmalloc.cc"]


def mimalloc(name, branch):
    """What mimalloc's own CMakeLists defines for a release build of the shared library."""
    folder = f"{{folder}}/c_src/mimalloc/{branch}"
    return Recipe(
        name=name, title="mimalloc", origin="libmimalloc-sys", version=mimalloc_version(branch),
        sources=given(f"c_src/mimalloc/{branch}/src/static.c"),
        flags=("-std=gnu11", *PRELOADED, "-fno-builtin-malloc", f"-I{folder}/include",
               f"-I{folder}/src", "-DMI_MALLOC_OVERRIDE", "-DMI_SHARED_LIB",
               "-DMI_SHARED_LIB_EXPORT", "-DMI_BUILD_RELEASE"))


# The two that snmalloc's CMakeLists adds on this processor: 16-byte compare and swap, prefetchw.
X86_64 = ("-mcx16", "-mprfchw") if platform.machine() == "x86_64" else ()

RECIPES = (
    Recipe(
        name="jemalloc", title="jemalloc", origin="tikv-jemalloc-sys", version=from_build_metadata,
        own_build=(("cp", "configure/configure", "jemalloc/configure"),
                   ("sh", "-c", "cd jemalloc && sh ./configure --with-version={metadata} "
                                "--disable-static --enable-doc=no"),
                   ("make", "-C", "jemalloc", "-j2", "build_lib_shared")),
        product="jemalloc/lib/libjemalloc.so.2",
        note="its own configure adds -funroll-loops and asserts nothing"),
    mimalloc("mimalloc3", "v3"),
    mimalloc("mimalloc2", "v2"),
    Recipe(
        name="snmalloc", title="snmalloc", origin="snmalloc-sys", version=from_origin,
        sources=given("upstream/src/snmalloc/override/malloc.cc",
                      "upstream/src/snmalloc/override/new.cc"),
        flags=("-std=c++20", *PRELOADED, "-fno-rtti", "-fomit-frame-pointer",
               "-ffunction-sections", *X86_64, "-I{folder}/upstream/src",
               "-DSNMALLOC_USE_CXX11_THREAD_ATEXIT_DIRECT", "-DSNMALLOC_USE_WAIT_ON_ADDRESS=1",
               "-DSNMALLOC_PLATFORM_HAS_GETENTROPY", "-DSNMALLOC_PTHREAD_ATFORK_WORKS",
               "-DSNMALLOC_HAS_LINUX_RANDOM_H", "-DSNMALLOC_HAS_LINUX_FUTEX_H",
               "-DSNMALLOC_NO_REALLOCARRAY", "-DSNMALLOC_NO_REALLOCARR",
               "-DSNMALLOC_CHECK_LOADS=false", "-DSNMALLOC_PAGEID=false",
               '-DSNMALLOC_EXPORT=__attribute__((visibility("default")))'),
        links=("-static-libstdc++", "-latomic"),
        note="its own CMakeLists links libstdc++ statically and prefers clang"),
    Recipe(
        name="tcmalloc", title="tcmalloc (Google)", origin="libtcmalloc-sys",
        version=tcmalloc_version, sources=tcmalloc_sources,
        flags=("-std=c++17", *PRELOADED, "-I{folder}/c_src/abseil-cpp", "-I{folder}/c_src/tcmalloc",
               "-DTCMALLOC_INTERNAL_8K_PAGES", "-DNOMINMAX", "-w"),
        note="without the crate's patches; 8 KiB pages, which is Google's default",
        # The C library's registration of restartable sequences keeps tcmalloc from its per-CPU
        # caches, and leaves it in a slower mode that its authors do not ship.
        env={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}),
    Recipe(
        name="rpmalloc", title="rpmalloc", origin="rpmalloc-sys", version=rpmalloc_version,
        sources=given("rpmalloc/rpmalloc/rpmalloc.c"),
        flags=("-std=c11", *PRELOADED, "-fno-builtin-malloc", "-D_GNU_SOURCE=1",
               "-DENABLE_OVERRIDE=1", "-DENABLE_PRELOAD=1"),
        links=("-ldl",),
        note="2021; without the -ffast-math and -funroll-loops of its own build"),
    Recipe(
        name="gperftools", title="gperftools", origin="libtcmalloc-minimal4", version=from_origin,
        product="libtcmalloc_minimal.so.4", is_debian=True, note="compiled by Debian"),
    Recipe(
        name="jemalloc530", title="jemalloc (Debian)", origin="libjemalloc2", version=from_origin,
        product="libjemalloc.so.2", is_debian=True, is_optional=True, note="compiled by Debian"),
    Recipe(
        name="mimalloc209", title="mimalloc (Debian)", origin="libmimalloc2.0", version=from_origin,
        product="libmimalloc.so.2", is_debian=True, is_optional=True, note="compiled by Debian"),
)
