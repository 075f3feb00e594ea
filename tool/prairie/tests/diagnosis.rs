//! `prairie doctor` and `prairie options`: what is in the way, and what can be set.
// SPDX-License-Identifier: MIT

mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;
use support::{built_library, compiled, compiled_by, copy_program, make_program, prairie};

/// None where prairie has not been built.
fn doctor() -> Option<assert_cmd::Command> {
    let mut command = prairie();
    command.args(["doctor", "--library"]).arg(built_library()?);
    Some(command)
}

#[test]
fn an_ordinary_program_would_be_served() {
    let Some(mut command) = doctor() else { return };
    command.args(["--", "/bin/ls"]).assert().success().stdout(
        contains("ok    preloaded, it answers malloc")
            .and(contains("ok    the loader takes the library into it"))
            .and(contains("prairie would serve /bin/ls.")),
    );
}

/// It is preloaded through a link, as by `prairie run`.
#[test]
fn a_library_in_an_odd_place_serves() {
    let Some(library) = built_library() else { return };
    let folder = tempfile::Builder::new().prefix("odd place:").tempdir().unwrap();
    let copy = folder.path().join("libprairie.so");
    fs::copy(library, &copy).unwrap();
    let mut command = prairie();
    command
        .args(["doctor", "--library"])
        .arg(&copy)
        .args(["--", "/bin/ls"])
        .assert()
        .success()
        .stdout(
            contains("odd place:")
                .and(contains("ok    preloaded, it answers malloc"))
                .and(contains("ok    the loader takes the library into it")),
        );
}

#[test]
fn settings_of_another_allocator_get_a_remedy() {
    let Some(mut command) = doctor() else { return };
    command.env("MALLOC_ARENA_MAX", "2").assert().success().stdout(
        contains("note  MALLOC_ARENA_MAX=2 is for the C library; prairie does not read it")
            .and(contains("fix: PRAIRIE_CONF=narenas:2")),
    );
}

/// It is the process's environment that is looked at, and not this one's.
#[test]
fn settings_of_a_process_are_its_own() {
    let mut program = Command::new("/bin/sh");
    program.args(["-c", "echo; read line"]).env("MIMALLOC_PURGE_DELAY", "10");
    let Some((_, said)) = verdict_of(&mut program) else { return };
    assert!(said.contains("MIMALLOC_PURGE_DELAY=10 is for mimalloc"), "{said}");
    assert!(said.contains("fix: PRAIRIE_CONF=dirty_decay_ms:10"), "{said}");
}

#[test]
fn a_static_program_would_not_and_gets_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let source = "int main(void) { return 0; }";
    let Some(program) = compiled(folder.path().join("program"), source, &["-static"]) else {
        return;
    };
    let Some(mut command) = doctor() else { return };
    command.arg("--").arg(&program).assert().code(1).stdout(
        contains("is a static program")
            .and(contains("fix: link it with libprairie.a instead"))
            .and(contains("prairie would NOT serve"))
            .and(contains("a malloc of its own").not()),
    );
}

/// A shell runs such a file itself; the kernel refuses it.
#[test]
fn a_text_without_an_interpreter_would_not() {
    let folder = tempfile::tempdir().unwrap();
    for contents in ["echo hi\n", ""] {
        let program = folder.path().join("program");
        make_program(&program, contents);
        let Some(mut command) = doctor() else { return };
        command
            .arg("--")
            .arg(&program)
            .assert()
            .code(1)
            .stdout(contains("a text without `#!`").and(contains("prairie would NOT serve")));
    }
}

#[test]
fn a_program_is_looked_at_from_a_folder_that_was_removed() {
    let Some(library) = built_library() else { return };
    let script = "cd \"$(mktemp -d)\" && rmdir \"$PWD\" && exec \"$@\"";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_prairie"), "doctor", "--library"]);
    let output = command.arg(&library).args(["--", "true"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("program\n"), "{output:?}");
}

#[test]
fn what_is_no_program_would_not() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let damaged = [b"\x7fELF\x02\x01".to_vec(), vec![0xff; 100]].concat();
    for (contents, said) in [
        (b"MZ\0\x01".to_vec(), "neither a program (ELF) nor a script"),
        (damaged, "a damaged ELF file: its program headers are not as long as those are"),
    ] {
        make_program(&program, contents);
        let Some(mut command) = doctor() else { return };
        let would_not = contains(said).and(contains("prairie would NOT serve"));
        command.arg("--").arg(&program).assert().code(1).stdout(would_not);
    }
}

/// Whether a process that waits is served, and what is said of it; None where processes may not be read.
fn verdict_of(program: &mut Command) -> Option<(bool, String)> {
    let mut doctor = doctor()?;
    let mut child = program
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // It answers once it has begun.
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    let pid = child.id().to_string();
    let output = doctor.args(["--pid", &pid]).output().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).replace(&pid, "PID");
    if support::is_refusal(&said) {
        eprintln!("skipped: processes may not be read here");
        return None;
    }
    Some((output.status.success(), said))
}

/// One that waits, with prairie in it under another name than its own: before it runs, and while it does.
fn require_served(program: &Path, linked: bool) {
    let Some(mut command) = doctor() else { return };
    let said = command.arg("--").arg(program).assert().success();
    if linked {
        said.stdout(
            contains("ok    prairie is linked into it")
                .and(contains("prairie would serve"))
                .and(contains("is a static program").not()),
        );
    }
    let Some((is_served, said)) = verdict_of(&mut Command::new(program)) else { return };
    assert!(is_served, "{said}");
    assert!(said.contains("has prairie in /") && !said.contains("whoever was loaded"), "{said}");
    assert!(said.contains("prairie serves process PID."), "{said}");
}

const WAITS: &str = "#include <stdio.h>\n#include <stdlib.h>\n\
    int main(void) { free(malloc(9)); puts(\"!\"); fflush(stdout); return getchar(); }";

#[test]
fn a_program_with_prairie_linked_in_is_served() {
    let Some(library) = built_library() else { return };
    let archive = library.with_file_name("libprairie.a").display().to_string();
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-Wl,--undefined=malloc", &archive, "-pthread"];
    for more in [&["-static"][..], &["-static", "-s"], &[]] {
        let flags: Vec<&str> = flags.iter().chain(more).copied().collect();
        let Some(program) = compiled(folder.path().join("program"), WAITS, &flags) else { return };
        require_served(&program, true);
    }
}

#[test]
fn a_program_on_prairies_libjemalloc_is_served() {
    let Some(library) = built_library() else { return };
    let folder = library.with_file_name("jemalloc");
    let flags = [
        folder.join("libjemalloc.so.2").display().to_string(),
        format!("-Wl,-rpath,{}", folder.display()),
    ];
    if !folder.join("libjemalloc.so.2").exists() {
        eprintln!("skipped: no libjemalloc.so.2 has been built");
        return;
    }
    let made = tempfile::tempdir().unwrap();
    let flags = flags.each_ref().map(String::as_str);
    let Some(program) = compiled(made.path().join("program"), WAITS, &flags) else { return };
    require_served(&program, false);
}

/// It never takes back what it gave.
const OWN_MALLOC: &str = "#include <stddef.h>\n\
    static _Alignas(16) char room[1 << 20];\nstatic size_t used;\n\
    void *malloc(size_t size) { void *block = room + used; used += (size + 15) / 16 * 16; return block; }\n\
    void *calloc(size_t count, size_t size) { return malloc(count * size); }\n\
    void free(void *block) { (void)block; }\n";

const OWN_REALLOC: &str = "void *realloc(void *block, size_t size)\n\
    {\n\
        char *from = block, *to = malloc(size);\n\
        for (size_t at = 0; from && at < size && from + at < room + used; at++) to[at] = from[at];\n\
        return to;\n\
    }\n";

#[test]
fn a_process_whose_malloc_is_anothers_is_not_served() {
    let Some(library) = built_library() else { return };
    let [main, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let flags = ["-shared", "-fPIC", "-fno-builtin"];
    let first = other.path().join("libjemalloc.so.2");
    let Some(first) = compiled(first, OWN_MALLOC, &flags) else { return };
    let Some(program) = compiled(main.path().join("program"), WAITS, &[]) else { return };
    let preloaded = |list: &[&Path]| {
        let list: Vec<String> = list.iter().map(|path| path.display().to_string()).collect();
        verdict_of(Command::new(&program).env("LD_PRELOAD", list.join(":")))
    };
    let Some((is_served, said)) = preloaded(&[&first, &library]) else { return };
    assert!(!is_served && said.contains("prairie does NOT serve process PID."), "{said}");
    assert!(said.contains("NO    libjemalloc.so.2 comes before prairie in LD_PRELOAD"), "{said}");
    let (is_served, said) = preloaded(&[&library, &first]).unwrap();
    assert!(is_served && said.contains("whoever was loaded first answers"), "{said}");
    let ours = library.with_file_name("jemalloc").join("libjemalloc.so.2");
    if ours.exists() {
        let (is_served, said) = preloaded(&[&ours, &first]).unwrap();
        assert!(is_served, "{said}");
    }

    let source = format!("{OWN_MALLOC}{WAITS}");
    let Some(program) =
        compiled(main.path().join("program"), &source, &["-rdynamic", "-fno-builtin"])
    else {
        return;
    };
    let preloaded = verdict_of(Command::new(program).env("LD_PRELOAD", library));
    let (is_served, said) = preloaded.unwrap();
    assert!(!is_served && said.contains("has prairie in /"), "{said}");
    assert!(said.contains("NO    it exports a malloc of its own"), "{said}");
}

/// It would answer malloc in all programs, and be called prairie.
#[test]
fn another_allocator_is_not_taken_for_prairie() {
    let folder = tempfile::tempdir().unwrap();
    let source = format!("{OWN_MALLOC}{OWN_REALLOC}");
    let flags = ["-shared", "-fPIC", "-fno-builtin"];
    let Some(other) = compiled(folder.path().join("program"), &source, &flags) else { return };
    let said = format!("{} answers malloc, but is not prairie", other.display());
    let asked = |verb: &str| {
        let mut command = prairie();
        command.args([verb, "--library"]).arg(&other).args(["--", "/bin/echo", "ran"]);
        command.assert()
    };
    asked("doctor").code(1).stdout(
        contains(format!("NO    {said}\n"))
            .and(contains("fix: name prairie's: --library FILE"))
            .and(contains("ok    prairie").not()),
    );
    asked("run").code(125).stdout("").stderr(contains(said));

    let Some(library) = built_library() else { return };
    let ours = library.with_file_name("jemalloc").join("libjemalloc.so.2");
    for ours in [library, ours].iter().filter(|ours| ours.exists()) {
        let mut command = prairie();
        command.args(["run", "--library"]).arg(ours).args(["--", "/bin/echo", "ran"]);
        command.assert().success().stdout("ran\n").stderr(contains("by prairie "));
    }
}

/// The same library serves both C libraries.
#[test]
fn a_program_for_musl_would_be_served_and_is() {
    let folder = tempfile::tempdir().unwrap();
    let source = "#include <stdlib.h>\n#include <unistd.h>\n\
                  int main(void) { volatile char *all = malloc(100); all[0] = 1; return sleep(3); }";
    let Some(program) = compiled_by("musl-gcc", folder.path().join("program"), source, &[]) else {
        return;
    };
    let Some(mut command) = doctor() else { return };
    command.arg("--").arg(&program).assert().success().stdout(
        contains("ok    the loader takes the library into it").and(contains("prairie would serve")),
    );
    let run = |library: &Path| {
        let mut command = prairie();
        command.args(["run", "--library"]).arg(library).arg("--").arg(&program);
        command
    };
    run(&built_library().unwrap())
        .assert()
        .success()
        .stderr(contains("seen in 1 process").and(contains("  heap     ")));
}

#[test]
fn a_program_with_a_malloc_of_its_own_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let source = "#include <stddef.h>\nvoid *malloc(size_t size) { (void)size; return 0; }\n\
                  int main(void) { return malloc(1) != 0; }";
    for (flags, said) in [
        (vec!["-rdynamic", "-fno-builtin"], "it exports a malloc of its own"),
        (vec!["-fvisibility=hidden", "-fno-builtin"], "it has a malloc of its own inside"),
    ] {
        let Some(program) = compiled(folder.path().join("program"), source, &flags) else { return };
        let Some(mut command) = doctor() else { return };
        command.arg("--").arg(&program).assert().code(1).stdout(contains(said));
    }
}

/// A relative path begins where the process is.
#[test]
fn a_library_that_is_there_and_was_refused_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path().join("program"), WAITS, &[]) else { return };
    fs::write(folder.path().join("libprairie.so"), "no library").unwrap();
    for (place, said) in [(".", "and the loader refused it"), ("no", "is not there where it runs")]
    {
        let mut command = Command::new(&program);
        command.env("LD_PRELOAD", format!("{place}/libprairie.so"));
        command.current_dir(folder.path()).stderr(std::process::Stdio::null());
        let Some((is_served, told)) = verdict_of(&mut command) else { return };
        assert!(!is_served && told.contains(said), "{told}");
    }
}

#[test]
fn a_script_is_looked_at_through_its_interpreter() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    make_program(&script, "#!/bin/sh\n");
    let Some(mut command) = doctor() else { return };
    command.arg("--").arg(&script).assert().success().stdout(contains("is a script for /bin/sh"));
}

/// A copy of the command outside of any checkout.
fn elsewhere(folder: &Path) -> assert_cmd::Command {
    let copy = folder.join("prairie");
    copy_program(env!("CARGO_BIN_EXE_prairie"), &copy);
    let mut command = assert_cmd::Command::new(copy);
    command.env_remove("LD_PRELOAD").env_remove("PRAIRIE_LIBRARY").env("XDG_CACHE_HOME", folder);
    command
}

#[test]
fn a_library_around_the_current_folder_is_nobodys_choice() {
    let [ours, theirs] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let bogus = theirs.path().join("build/libprairie.so");
    fs::create_dir_all(theirs.path().join("build/below")).unwrap();
    fs::write(&bogus, "bogus").unwrap();
    for folder in ["build/below", "build", "."] {
        let mut command = elsewhere(ours.path());
        command.current_dir(theirs.path().join(folder)).args(["doctor", "--json"]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("\"checks\""), "{output:?}");
        assert!(!said.contains(&bogus.display().to_string()), "{said}");
    }
}

#[test]
fn sources_around_the_current_folder_must_be_the_users_own() {
    use std::os::unix::fs::PermissionsExt;
    let [ours, theirs] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    for folder in ["src", "dev", "lab/made"] {
        fs::create_dir_all(theirs.path().join(folder)).unwrap();
    }
    fs::write(theirs.path().join("src/prairie.c"), "").unwrap();
    for script in ["lab/made/run", "dev/lab"] {
        make_program(&theirs.path().join(script), "#!/bin/sh\necho ran\n");
    }
    let lab = |mode| {
        fs::set_permissions(theirs.path(), fs::Permissions::from_mode(mode)).unwrap();
        let mut command = elsewhere(ours.path());
        command.current_dir(theirs.path().join("dev")).args(["lab", "made"]).assert()
    };
    lab(0o755).success().stdout("ran\n");
    lab(0o1777).code(125).stderr(contains("works inside a checkout of prairie"));
}

#[test]
fn another_preload_is_noted() {
    let Some(mut command) = doctor() else { return };
    command
        .env("LD_PRELOAD", "/no/libjemalloc.so.2")
        .assert()
        .stdout(contains("note  LD_PRELOAD names libjemalloc.so.2, which answers malloc too"));
}

#[test]
fn json_tells_the_same() {
    let Some(mut command) = doctor() else { return };
    let output = command.args(["--json", "--", "/bin/ls"]).output().unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&value["schema"], &value["well"]), (&1.into(), &true.into()));
    let checks = value["checks"].as_array().unwrap();
    assert!(checks.iter().any(|check| check["about"] == "kernel"));
    assert!(checks.iter().all(|check| check["state"] != "bad"));
}

#[test]
fn a_file_has_colours_only_where_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    for (verb, words) in [("options", &["narenas"][..]), ("doctor", &[])] {
        for (color, has_codes) in [("auto", false), ("never", false), ("always", true)] {
            let mut command = prairie();
            command.arg(verb).args(words).args(["--force", "--color", color, "-o"]).arg(&path);
            command.assert().stdout("");
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(text.contains('\u{1b}'), has_codes, "{text}");
        }
    }
}

#[test]
fn options_are_listed_with_what_is_set_here() {
    prairie()
        .env("MALLOC_CONF", "narenas:3,colour:red")
        .args(["options", "narenas"])
        .assert()
        .success()
        .stdout(contains("narenas = 0").and(contains("MALLOC_CONF sets 3")))
        .stderr(contains("MALLOC_CONF: no option is called 'colour'"));
    let output = prairie().args(["options", "--json"]).output().unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let options = value["options"].as_array().unwrap();
    assert!(
        options.len() > 30
            && options.iter().all(|o| o["section"] != "Understood, and without effect")
    );
}

#[test]
fn a_byte_that_is_no_text_hides_no_other_setting() {
    prairie()
        .env("MALLOC_CONF", OsStr::from_bytes(b"narenas:3,prof_prefix:/caf\xe9,colour:red"))
        .args(["options", "narenas"])
        .assert()
        .success()
        .stdout(contains("MALLOC_CONF sets 3"))
        .stderr(contains("MALLOC_CONF: no option is called 'colour'"));
}
