#!/usr/bin/env python3
# make_sbom.py - the bill of materials of a release, as CycloneDX.
# SPDX-License-Identifier: MIT
"""Usage: make_sbom.py CARGO_LOCK TARBALL TIME <METADATA >SBOM

METADATA is what `cargo metadata` prints, TARBALL the sources of the release, TIME seconds of the epoch. The library has nothing
in it that is not in the sources and needs the C library only; the command `prairie` has the crates of CARGO_LOCK, with the
licences that their authors state. Crates that only tests use have the scope `excluded`. The same input makes the same bytes.
Ends with 1 when a crate has no licence, or when the result is not what the schema says.

It runs in the environment of dev/release, which has what dev/sbom_requirements.txt names.
"""
import hashlib
import json
import sys
import tomllib
import uuid
from datetime import datetime, timezone
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from check_version import version_of

ROOT = Path(__file__).resolve().parent.parent
SUMMARY = "A general-purpose memory allocator for whole programs"


def crates_in_program(metadata):
    """Ids of the packages that are compiled when the workspace is, on any platform; the others are for tests."""
    edges = {node["id"]: [link["pkg"] for link in node["deps"] if any(kind["kind"] != "dev" for kind in link["dep_kinds"])]
             for node in metadata["resolve"]["nodes"]}
    reached, waiting = set(), list(metadata["workspace_members"])
    while waiting:
        package = waiting.pop()
        if package not in reached:
            reached.add(package)
            waiting += edges[package]
    return reached


def expression(licence):
    # Older manifests have a stroke where SPDX has a word.
    return licence.replace("/", " OR ")


def crate(package, checksums, in_program):
    name, version = package["name"], package["version"]
    if not package["license"]:
        sys.exit(f"make_sbom: the crate {name} {version} states no licence")
    component = Component(type=ComponentType.LIBRARY, name=name, version=version, bom_ref=f"crate:{name}@{version}",
                          purl=PackageURL("cargo", None, name, version),
                          scope=ComponentScope.REQUIRED if package["id"] in in_program else ComponentScope.EXCLUDED,
                          licenses=[LicenseFactory().make_from_string(expression(package["license"]))])
    checksum = checksums.get((name, version))
    if checksum:
        component.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=checksum))
    if package["source"] and package["repository"]:
        component.external_references.add(ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(package["repository"])))
    return component


def whole(version, tarball):
    digest = hashlib.sha256(tarball.read_bytes()).hexdigest()
    return Component(type=ComponentType.LIBRARY, name="prairie", version=version, description=SUMMARY, bom_ref="release",
                     purl=PackageURL("generic", None, "prairie", version, {"checksum": f"sha256:{digest}"}),
                     licenses=[LicenseFactory().make_from_string("MIT")],
                     hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)])


def bill(metadata, lock, tarball, seconds):
    version = version_of(ROOT)
    checksums = {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock["package"]}
    in_program = crates_in_program(metadata)
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_OID, hashlib.sha256(tarball.read_bytes()).hexdigest()))
    bom.metadata.timestamp = datetime.fromtimestamp(seconds, timezone.utc)
    bom.metadata.component = release = whole(version, tarball)

    library = Component(type=ComponentType.LIBRARY, name="libprairie", version=version, bom_ref="libprairie",
                        description="libprairie.so and libprairie.a, in C", scope=ComponentScope.REQUIRED,
                        licenses=[LicenseFactory().make_from_string("MIT")],
                        properties=[Property(name="prairie:needs", value="the C library of the system, and nothing else")])
    bom.components.add(library)
    components = {package["id"]: crate(package, checksums, in_program) for package in metadata["packages"]}
    for component in components.values():
        bom.components.add(component)

    bom.register_dependency(library)
    for node in metadata["resolve"]["nodes"]:
        bom.register_dependency(components[node["id"]], [components[link["pkg"]] for link in node["deps"]])
    bom.register_dependency(release, [library, *(components[member] for member in metadata["workspace_members"])])
    return bom


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    lock = tomllib.loads(Path(sys.argv[1]).read_text())
    text = JsonV1Dot6(bill(json.load(sys.stdin), lock, Path(sys.argv[2]), int(sys.argv[3]))).output_as_string(indent=1)
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if problem:
        print(f"make_sbom: not valid: {str(problem)[:300]}", file=sys.stderr)
        return 1
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
