"""python3: modules of its own test suite; each test ends as it ends with the C library's malloc."""
# SPDX-License-Identifier: MIT

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from cases.case import Case, Missing

# Left out of the suite: what needs a network, a display or another system; what mostly sleeps; what
# fails or varies with the C library's malloc (test_concurrent_futures, test_ensurepip, test_idle,
# test_signal, test_socket).
# Those that allocate in many ways in little time.
QUICK = """augassign bigmem bytes collections copy csv deque dict dictviews exceptions format
functools generators heapq json list memoryview ordered_dict re sort struct thread unicodedata
xml_etree_c zlib""".split()

FULL = """abc argparse array ast asyncgen atexit audit augassign base64 bdb bigaddrspace bigmem
binascii binop bisect bool buffer builtin bytes bz2 c_locale_coercion calendar call cgi
charmapcodec class cmath cmd cmd_line cmd_line_script code codeccallbacks codecencodings_cn
codecencodings_jp codecmaps_jp codecs codeop collections colorsys compare compile compileall
complex configparser contains context contextlib copy copyreg coroutines cprofile csv ctypes
dataclasses datetime dbm_dumb decimal decorators deque dict dictcomps dictviews difflib dis
doctest dtrace dynamic dynamicclassattribute email embed enum enumerate exception_group exceptions
file fileinput float flufl fnmatch fork1 format fractions frame frozen fstring funcattrs functools
future gc generators generator_stop genericpath getopt glob global grammar graphlib gzip hash
hashlib heapq hmac html htmlparser importlib index inspect int interpreters io ipaddress iter
iterlen itertools json keyword largefile lib2to3 linecache list listcomps locale long lzma mailbox
marshal math memoryio memoryview metaclass mimetypes minidom mmap module modulefinder
multibytecodec named_expressions netrc ntpath numeric_tower opcodes operator optparse ordered_dict
os patma pathlib peepholer pickle pickletools pkgutil platform plistlib posix posixpath pow pprint
print property pstats pty pulldom pyclbr pyexpat queue quopri random range re reprlib richcmp
rlcompleter robotparser runpy sax scope secrets select set shelve shlex shutil slice sort
source_encoding stat statistics strftime string stringprep strptime strtod struct structseq
subprocess super symtable syntax sys sys_settrace sysconfig tabnanny tarfile tempfile textwrap
thread threading threadedtempfile time timeit tokenize tools trace traceback tracemalloc tuple
types typing ucn unary unicode_identifiers unicodedata unittest unpack urllib urlparse userdict
userlist userstring uuid venv warnings wave weakref weakset with wsgiref xml_etree xml_etree_c
yield_from zipapp zipfile zipimport zlib zoneinfo""".split()

# regrtest's codes: 0 all passed, 2 some failed, 3 a test left something behind. Which tests fail is
# compared.
EXIT_CODES = (0, 2, 3)


class Python(Case):
    name = "python3"
    packages = ("python3", "libpython3.11-testsuite")
    programs = ("python3",)

    def play(self, on):
        # Without its own pool for small objects, all of Python's objects come from malloc.
        self.test(on, "malloc", QUICK if on.quick else FULL, [] if on.quick else ["-j2"])
        if not on.quick:
            self.test(on, "pymalloc", QUICK, [])

    def test(self, on, allocator, modules, options):
        report = on.folder / f"{allocator}.xml"
        names = [f"test_{module}" for module in modules]
        command = ["python3", "-m", "test", "--timeout", "300", "--junit-xml", report]
        on.run([*command, *options, *names], exit_codes=EXIT_CODES,
               settings={"PYTHONMALLOC": allocator, "PYTHONHASHSEED": "0"})
        tests = ElementTree.parse(report).getroot().iter("testcase")
        outcomes = {}
        for test in tests:
            outcome = [child.tag for child in test if not child.tag.startswith("system")]
            outcomes.setdefault(test.get("name"), []).append(" ".join(outcome) or "passed")
        on.require(len(outcomes) > 10 * len(modules), f"only {len(outcomes)} tests were found")
        for name, found in outcomes.items():
            on.note(f"{allocator}: {name}", ", ".join(sorted(found)))

    def proof_command(self, inputs):
        return ["python3", "-c", "import sqlite3, json, ctypes"]

    def require_installed(self):
        super().require_installed()
        if not any(Path("/usr/lib").glob("python3.*/test/libregrtest")):
            raise Missing(f"python3 has no test suite: apt-get install {self.packages[-1]}")
