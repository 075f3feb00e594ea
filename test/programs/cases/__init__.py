"""The table of real programs. A case is one file here and one row below."""
# SPDX-License-Identifier: MIT

from cases.git import Git
from cases.gs import Ghostscript
from cases.gxx import Gxx
from cases.javascript import JavaScriptCore, Node, QuickJS
from cases.perl import Perl
from cases.python3 import Python
from cases.redis import Redis
from cases.sort import Sort
from cases.sqlite import Sqlite

TABLE = (Python(), Redis(), Sqlite(), Gxx(), Git(), Perl(), Sort(), Ghostscript(), Node(),
         JavaScriptCore(), QuickJS())
