"""sqlite3: a database of orders built, indexed, queried, changed, checked and dumped."""
# SPDX-License-Identifier: MIT

import measure
from cases.case import Case


class Sqlite(Case):
    name = "sqlite3"
    packages = ("sqlite3",)
    programs = ("sqlite3",)
    sources = ("inputs/orders.sql",)

    def prepare(self, inputs, quick, work):
        rows = 120_000 if quick else 1_400_000
        script = (self.here / "inputs" / "orders.sql").read_text(encoding="utf-8")
        (inputs / "orders.sql").write_text(script.replace("@ROWS@", str(rows)), encoding="utf-8")

    def play(self, on):
        database = on.folder / "orders.db"
        out = on.run(["sqlite3", "-batch", "-bail", database], stdin=on.inputs / "orders.sql")
        on.require("integrity: ok" in out.read_text(encoding="utf-8"), "integrity_check is not ok")
        on.note_file("answers", out)
        on.note_file("database", database)
        dump = on.run(["sqlite3", "-batch", database, ".dump"])
        on.note_file("dump", dump)
        again = on.folder / "again.db"
        on.run(["sqlite3", "-batch", "-bail", again], stdin=dump)
        second = on.run(["sqlite3", "-batch", again, ".dump"])
        on.require(measure.digest(second) == measure.digest(dump), "a dump does not load as it was")

    def proof_command(self, inputs):
        return ["sqlite3", ":memory:", "create table t(a); insert into t values (1)"]
