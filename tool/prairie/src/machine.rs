//! What a result depends on besides the program: the machine and its settings, without its name.
// SPDX-License-Identifier: MIT

use std::fs;

use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    pub kernel: String,
    pub architecture: String,
    pub cpu: String,
    pub cores: usize,
    pub memory_bytes: u64,
    pub page_bytes: u64,
    /// The chosen one of the kernel's words: always, madvise, never.
    pub transparent_huge_pages: String,
    pub cpu_governor: Option<String>,
    /// Processes that were ready to run, on average over the last minute.
    pub load_before: f64,
}

pub fn describe() -> Machine {
    Machine {
        kernel: read("/proc/sys/kernel/osrelease"),
        architecture: std::env::consts::ARCH.to_owned(),
        cpu: cpu(&read("/proc/cpuinfo")),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: memory_bytes(&read("/proc/meminfo")),
        page_bytes: crate::sys::page_bytes(),
        transparent_huge_pages: chosen(&read("/sys/kernel/mm/transparent_hugepage/enabled")),
        cpu_governor: Some(read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
            .filter(|text| !text.is_empty()),
        load_before: load(),
    }
}

impl Machine {
    /// One line above a table.
    pub fn line(&self) -> String {
        let cores = if self.cores == 1 { "1 core".into() } else { format!("{} cores", self.cores) };
        format!(
            "{}, {cores}, Linux {}, huge pages: {}",
            self.cpu, self.kernel, self.transparent_huge_pages
        )
    }

    /// What speaks against believing in small differences.
    pub fn warning(&self) -> Option<String> {
        (self.load_before > 0.5 * self.cores as f64).then(|| {
            format!(
                "the machine was busy before the first run (load {:.1} on {}): expect wide intervals",
                self.load_before, self.cores
            )
        })
    }
}

pub fn load() -> f64 {
    read("/proc/loadavg").split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// x86 says what it is; of ARM only numbers are known.
fn cpu(text: &str) -> String {
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    field("model name")
        .or_else(|| {
            Some(format!(
                "CPU implementer {} part {}",
                field("CPU implementer")?,
                field("CPU part")?
            ))
        })
        .unwrap_or_else(|| "unknown CPU".to_owned())
}

fn memory_bytes(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let number = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

/// The word in brackets.
fn chosen(text: &str) -> String {
    let word = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    word.map_or("unknown", |(word, _)| word).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_read() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen(""), "unknown");
        assert_eq!(cpu("processor : 0\nmodel name\t: Some CPU\n"), "Some CPU");
        let arm = "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(cpu(arm), "CPU implementer 0x41 part 0xd0c");
        assert_eq!(memory_bytes("MemTotal:   1000 kB\n"), 1_024_000);
    }

    #[test]
    fn a_description_has_no_host_name() {
        let name = read("/proc/sys/kernel/hostname");
        let text = serde_json::to_string(&describe()).unwrap();
        assert!(name.len() < 4 || !text.contains(&name), "{text}");
    }
}
