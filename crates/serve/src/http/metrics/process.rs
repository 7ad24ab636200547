//! What the system says of this process, under the names that Prometheus' own clients use.

use super::Text;

/// Writes what is known; where there is no `/proc`, nothing.
pub(super) fn write(text: &mut Text) {
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return };
    // Behind the name in parentheses, which may hold anything: field 3 and on.
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace().collect())
        .unwrap_or_default();
    let field = |number: usize| fields.get(number - 3).and_then(|text| text.parse::<f64>().ok());
    // Linux counts in hundredths of a second for every program, whatever the kernel does.
    const TICKS: f64 = 100.0;
    if let (Some(user), Some(system)) = (field(14), field(15)) {
        let seconds = (user + system) / TICKS;
        text.one(
            "process_cpu_seconds_total",
            "counter",
            "Processor time of this process.",
            seconds,
        );
    }
    if let Some(size) = field(23) {
        text.one("process_virtual_memory_bytes", "gauge", "Addresses in use.", size);
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    if let Some(kib) = resident {
        text.one("process_resident_memory_bytes", "gauge", "Memory in use.", kib * 1024);
    }
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        text.one("process_open_fds", "gauge", "Open file descriptors.", files.count());
    }
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let most = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    if let Some(most) = most.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()) {
        text.one("process_max_fds", "gauge", "The most there may be.", most);
    }
    let booted = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let booted = booted.lines().find_map(|line| line.strip_prefix("btime ")?.parse::<f64>().ok());
    if let (Some(booted), Some(started)) = (booted, field(22)) {
        let at = booted + started / TICKS;
        text.one("process_start_time_seconds", "gauge", "When it began, since 1970.", at);
    }
}
