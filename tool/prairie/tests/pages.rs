//! Pages: small, whole, without network, and alive in a browser.
// SPDX-License-Identifier: MIT

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Suite, prairie};

const MAX_BYTES: u64 = 2_000_000;

/// The page as a browser has it after its script has run; None where there is no browser.
fn in_browser(page: &Path) -> Option<String> {
    in_browser_with(page, &[])
}

fn in_browser_with(page: &Path, options: &[&str]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    for browser in ["chromium", "chromium-browser", "google-chrome"] {
        let output = Command::new(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000"])
            .args(["--disable-quic", "--no-first-run", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-sync"])
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .args(options)
            .arg("--dump-dom")
            .arg(format!("file://{}", page.display()))
            .output();
        if let Ok(output) = output
            && output.status.success()
        {
            return Some(String::from_utf8_lossy(&output.stdout).into_owned());
        }
    }
    // `make pictures` has one.
    assert!(std::env::var_os("PRAIRIE_BROWSER").is_none(), "there is no browser");
    eprintln!("skipped: no chromium");
    None
}

fn require_whole(page: &Path) {
    assert!(fs::metadata(page).unwrap().len() < MAX_BYTES);
    let text = fs::read_to_string(page).unwrap();
    assert!(text.starts_with("<!DOCTYPE html>") && text.trim_end().ends_with("</html>"));
    for word in ["src=\"", "href=\"http", "@import", "url(http"] {
        assert!(!text.contains(word), "{word} in {}", page.display());
    }
    // The script makes the heads of tables answer to keys.
    let Some(alive) = in_browser(page) else { return };
    assert!(alive.contains("tabindex=\"0\""), "{}", page.display());
}

#[test]
fn the_report_on_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let compare = || {
        let mut command = prairie();
        command.args(["compare", "--allocators", "glibc", "--rounds", "5", "-o"]).arg(&page);
        command
    };
    compare().args(["--", "sleep", "0.05"]).assert().success();
    require_whole(&page);
    let text = fs::read_to_string(&page).unwrap();
    for word in [
        "Allocators compared on: sleep 0.05",
        "<svg",
        "prefers-color-scheme: dark",
        "\"schema\": 1",
        "All figures",
        "class=\"sortable\"",
    ] {
        assert!(text.contains(word), "{word}");
    }
    let there = predicates::str::contains("report.html: the file is there already");
    compare().args(["--", "sleep", "0.05"]).assert().code(125).stderr(there);
    compare().args(["--force", "--", "true"]).assert().success();
}

#[test]
fn the_report_on_a_suite() {
    let suite = Suite::new(
        "[[workload]]\nname = 'first'\ncommand = ['true']\n\
         [[workload]]\nname = 'second'\nseries = true\ncommand = ['sleep', '0.05']\n",
    );
    suite.compare().assert().success();
    require_whole(&suite.path("compare.html"));
    let text = fs::read_to_string(suite.path("compare.html")).unwrap();
    assert!(text.contains("Time against memory, all workloads"));
    assert!(text.contains("second: resident memory over time"));
    let again = format!("<code>prairie compare --suite {} ", suite.path("suite.toml").display());
    assert!(text.contains(&again) && text.contains(" --warmup 0 --seed "), "{again}");
}

fn flame_graph(folder: &Path) -> PathBuf {
    let (heap, page) = (folder.join("a.heap"), folder.join("flame.html"));
    let text = "heap_v2/1\n@ 0x1001 0x2001\n  t*: 1: 4096 [1: 4096]\n\nMAPPED_LIBRARIES:\n";
    fs::write(&heap, text).unwrap();
    prairie().args(["prof", "--flame", "-o"]).args([&page, &heap]).assert().success();
    page
}

#[test]
fn the_flame_graph() {
    let folder = tempfile::tempdir().unwrap();
    let page = flame_graph(folder.path());
    require_whole(&page);
}

/// The graph's own script has run: it names the root, which the file leaves without a name.
#[test]
fn the_flame_graph_fits_its_names_into_the_window() {
    let folder = tempfile::tempdir().unwrap();
    let page = flame_graph(folder.path());
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("<title>all (") && !text.contains(">all </text>"));
    let Some(alive) = in_browser(&page) else { return };
    assert!(alive.contains(">all </text>"), "{alive}");
}

/// By what the system prefers, and in a narrow window as well: only tables may be moved sideways.
#[test]
fn a_page_is_light_or_dark_and_as_wide_as_its_window() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let compare = ["compare", "--allocators", "glibc", "--rounds", "5", "-o"];
    prairie().args(compare).arg(&page).args(["--", "sleep", "0.05"]).assert().success();
    let measure = "<script>document.body.dataset.seen = [getComputedStyle(document.body).backgroundColor, \
                   document.documentElement.scrollWidth - innerWidth].join(' ')</script></body>";
    let text = fs::read_to_string(&page).unwrap().replace("</body>", measure);
    fs::write(&page, text).unwrap();
    for (scheme, size, seen) in [
        ("1", "1200,800", "rgb(255, 255, 255) 0"),
        ("0", "1200,800", "rgb(20, 23, 26) 0"),
        ("0", "600,800", "rgb(20, 23, 26) 0"),
    ] {
        let options = [
            &format!("--blink-settings=preferredColorScheme={scheme}"),
            &format!("--window-size={size}"),
            "--hide-scrollbars",
        ];
        let Some(alive) = in_browser_with(&page, &options) else { return };
        let expected = format!("data-seen=\"{seen}\"");
        let found = alive.split("data-seen=").nth(1).map(|text| &text[..60.min(text.len())]);
        assert!(alive.contains(&expected), "{expected}: {found:?}");
    }
}

#[test]
fn a_click_sorts_a_table_by_what_figures_are_worth() {
    let folder = tempfile::tempdir().unwrap();
    let (heap, page) = (folder.path().join("a.heap"), folder.path().join("flame.html"));
    let mut text = "heap_v2/1\n".to_owned();
    for (address, bytes) in [("0x1001", 900), ("0x2001", 3 << 20), ("0x3001", 20 << 10)] {
        text += &format!("@ {address}\n  t*: 1: {bytes} [1: {bytes}]\n");
    }
    fs::write(&heap, text + "\nMAPPED_LIBRARIES:\n").unwrap();
    prairie().args(["prof", "--flame", "-o"]).args([&page, &heap]).assert().success();
    let click = "<script>document.querySelectorAll('th')[2].click()</script></body>";
    let text = fs::read_to_string(&page).unwrap().replace("</body>", click);
    fs::write(&page, text).unwrap();
    let Some(alive) = in_browser(&page) else { return };
    let places = ["<td>900 B</td>", "<td>20.0 KiB</td>", "<td>3.00 MiB</td>"];
    let places = places.map(|cell| alive.find(cell).unwrap_or_else(|| panic!("{cell}")));
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn raw_data_goes_to_standard_output_too() {
    let output = prairie()
        .args(["compare", "--allocators", "glibc", "--rounds", "1", "--json", "--", "true"])
        .output()
        .unwrap();
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["runs"].as_array().unwrap().len(), 2);
}
