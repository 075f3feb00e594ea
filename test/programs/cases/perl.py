"""perl: words counted in hashes, records in nested structures, regular expressions, formatting."""
# SPDX-License-Identifier: MIT

from cases import text
from cases.case import Case


class Perl(Case):
    name = "perl"
    packages = ("perl",)
    programs = ("perl",)
    sources = ("cases/text.py", "inputs/words.pl")

    def prepare(self, inputs, quick, work):
        text.write_lines(inputs / "lines.txt", (10 if quick else 160) << 20, seed=12)

    def play(self, on):
        script = self.here / "inputs" / "words.pl"
        out = on.run(["perl", script, on.inputs / "lines.txt"], settings={"PERL_HASH_SEED": "0"})
        on.note_file("report", out)

    def proof_command(self, inputs):
        return ["perl", "-e", "my %h = map { $_ => 1 } 1 .. 100; print scalar keys %h"]
