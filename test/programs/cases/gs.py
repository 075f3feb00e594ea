"""ghostscript: a long document in PostScript made into pixels, text and PDF, and that into inks."""
# SPDX-License-Identifier: MIT

from cases.case import Case


class Ghostscript(Case):
    name = "gs"
    packages = ("ghostscript",)
    programs = ("gs",)
    sources = ("inputs/document.ps",)

    def prepare(self, inputs, quick, work):
        script = (self.here / "inputs" / "document.ps").read_text(encoding="ascii")
        pages = 16 if quick else 100
        (inputs / "document.ps").write_text(script.replace("@PAGES@", str(pages)), encoding="ascii")

    def play(self, on):
        source = on.inputs / "document.ps"
        # A fixed time and no identifiers: the PDF is the same bytes at every run.
        fixed = {"SOURCE_DATE_EPOCH": "1216900800"}
        pdf = on.folder / "document.pdf"
        base = ["gs", "-q", "-dSAFER", "-dBATCH", "-dNOPAUSE"]

        def render(device, out, source, *options):
            on.run([*base, f"-sDEVICE={device}", *options, f"-sOutputFile={out}", source],
                   settings=fixed)
            return out

        resolution = "-r50" if on.quick else "-r100"
        smooth = ["-dTextAlphaBits=4", "-dGraphicsAlphaBits=4"]
        on.note_file("pixels", render("ppmraw", on.folder / "a.ppm", source, resolution, *smooth))
        on.note_file("text", render("txtwrite", on.folder / "a.txt", source))
        render("pdfwrite", pdf, source, "-dOmitInfoDate=true", "-dOmitID=true", "-dOmitXMP=true")
        on.note_file("PDF", pdf)
        on.note_file("inks of the PDF", render("pamcmyk32", on.folder / "b.pam", pdf, resolution))

    def proof_command(self, inputs):
        return ["gs", "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=nullpage", "-c", "showpage", "quit"]
