#!/usr/bin/env python3
# sbom_test.py - a bill of materials is valid, and names every crate of the lock file with its licence and sum.
# SPDX-License-Identifier: MIT
"""Usage: sbom_test.py CARGO_LOCK SBOM TARBALL"""
import hashlib
import json
import sys
import tomllib
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def fail(text):
    sys.exit(f"sbom_test: {text}")


def licence_of(component):
    stated = component.get("licenses") or fail(f"{component['name']} has no licence")
    return [entry.get("expression") or entry["license"].get("id") or fail(f"{component['name']}: {entry} is no licence of SPDX")
            for entry in stated]


def main():
    lock = tomllib.loads(Path(sys.argv[1]).read_text())
    text = Path(sys.argv[2]).read_text()
    bill = json.loads(text)
    valid = JsonStrictValidator(SchemaVersion.V1_6)
    if problem := valid.validate_str(text):
        fail(f"not valid: {problem}")
    broken = {**bill, "components": [{**bill["components"][0], "type": "allocator"}]}
    if not valid.validate_str(json.dumps(broken)):
        fail("the check of the schema sees nothing")

    digest = hashlib.sha256(Path(sys.argv[3]).read_bytes()).hexdigest()
    release = bill["metadata"]["component"]
    if [entry["content"] for entry in release["hashes"]] != [digest]:
        fail("the sum of the sources is another")
    crates = {(part["name"], part["version"]): part for part in bill["components"] if part["purl" if "purl" in part else "name"]
              .startswith("pkg:cargo/")}
    locked = {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock["package"]}
    if set(crates) != set(locked):
        fail(f"not the crates of the lock file: {sorted(set(crates) ^ set(locked))[:5]}")
    for key, part in crates.items():
        licence_of(part)
        sums = [entry["content"] for entry in part.get("hashes", [])]
        if sums != ([locked[key]] if locked[key] else []):
            fail(f"{key} has another sum")
    others = [part for part in bill["components"] if (part["name"], part["version"]) not in crates]
    if [part["name"] for part in others] != ["libprairie"] or licence_of(others[0]) != ["MIT"]:
        fail(f"beside crates there is to be the library alone: {others}")

    depends = {entry["ref"]: entry.get("dependsOn", []) for entry in bill["dependencies"]}
    if depends["libprairie"]:
        fail("the library needs nothing")
    for entry in lock["package"]:
        got = {ref.split(":", 1)[1].rsplit("@")[0] for ref in depends[f"crate:{entry['name']}@{entry['version']}"]}
        # The lock file names what any choice of features needs.
        if not got <= {name.split()[0] for name in entry.get("dependencies", [])}:
            fail(f"{entry['name']} does not depend on {sorted(got)}")
    scopes = [part["scope"] for part in crates.values()]
    if not {"required", "excluded"} <= set(scopes):
        fail("crates of the program and those of its tests are not told apart")
    print(f"ok: a valid bill of {len(crates)} crates, {scopes.count('excluded')} of them for tests only")


if __name__ == "__main__":
    main()
