//! What the operating system says about this process. Linux has it in `/proc`; elsewhere nothing is known.

use std::time::Duration;

/// The process, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Process {
    /// Processor time, user and system.
    pub(super) cpu: Option<Duration>,
    /// Memory that is resident, in bytes.
    pub(super) resident_bytes: Option<u64>,
    /// Address space, in bytes.
    pub(super) virtual_bytes: Option<u64>,
    /// Open file descriptors.
    pub(super) open_fds: Option<u64>,
    /// How many may be open; `None` if there is no limit, too.
    pub(super) max_fds: Option<u64>,
    /// Threads.
    pub(super) threads: Option<u64>,
    /// When it was started, since 1970.
    pub(super) started: Option<Duration>,
}

impl Process {
    /// This process at this moment.
    #[cfg(target_os = "linux")]
    pub(super) fn now() -> Self {
        use std::fs::{read_dir, read_to_string};

        let read = |path| read_to_string(path).unwrap_or_default();
        let units = Units {
            ticks_per_second: rustix::param::clock_ticks_per_second(),
            page_bytes: rustix::param::page_size() as u64,
        };
        // The listing itself is open while it is read.
        let open =
            read_dir("/proc/self/fd").ok().map(|open| (open.count() as u64).saturating_sub(1));
        Self {
            open_fds: open,
            max_fds: max_fds(&read("/proc/self/limits")),
            ..of_stat(&read("/proc/self/stat"), &read("/proc/stat"), units)
        }
    }

    /// Nothing is known here.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn now() -> Self {
        Self::default()
    }
}

/// What the kernel counts in.
#[cfg(any(target_os = "linux", test))]
#[derive(Clone, Copy)]
struct Units {
    ticks_per_second: u64,
    page_bytes: u64,
}

/// From `/proc/self/stat` (proc_pid_stat(5)) and `/proc/stat`, which knows when the machine was started.
#[cfg(any(target_os = "linux", test))]
fn of_stat(own: &str, machine: &str, units: Units) -> Process {
    // The second field is the program's name in parentheses, which may hold anything. The third one is `fields[0]`.
    let fields = own.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let ticks = |ticks: u64| Duration::from_secs_f64(ticks as f64 / units.ticks_per_second as f64);
    let machine = machine.lines().find_map(|line| line.strip_prefix("btime "));
    let machine = machine.and_then(|seconds| seconds.trim().parse().ok()).map(Duration::from_secs);
    Process {
        cpu: field(14).zip(field(15)).map(|(user, system)| ticks(user.saturating_add(system))),
        resident_bytes: field(24).map(|pages| pages.saturating_mul(units.page_bytes)),
        virtual_bytes: field(23),
        threads: field(20),
        started: field(22).zip(machine).map(|(own, machine)| machine + ticks(own)),
        ..Process::default()
    }
}

/// The soft limit in `/proc/self/limits`.
#[cfg(any(target_os = "linux", test))]
fn max_fds(limits: &str) -> Option<u64> {
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    limit.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: Units = Units { ticks_per_second: 100, page_bytes: 4096 };

    #[test]
    fn a_program_may_have_any_name() {
        let own = "12 (a) b (c)) S 1 12 12 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 7 0 1000 \
                   8192000 300 18446744073709551615 1";
        let process = of_stat(own, "cpu 1 2\nbtime 1700000000\n", UNITS);
        assert_eq!(process.cpu, Some(Duration::from_secs(3)));
        assert_eq!(process.threads, Some(7));
        assert_eq!(process.virtual_bytes, Some(8_192_000));
        assert_eq!(process.resident_bytes, Some(300 * 4096));
        assert_eq!(process.started, Some(Duration::from_secs(1_700_000_010)));
    }

    #[test]
    fn what_is_not_there_is_not_known() {
        assert_eq!(of_stat("", "", UNITS), Process::default());
        assert_eq!(of_stat("1 (a) S 1", "btime x", UNITS), Process::default());
        assert_eq!(
            max_fds("Max open files            unlimited            unlimited  files"),
            None
        );
        assert_eq!(max_fds(""), None);
    }

    #[test]
    fn the_soft_limit_counts() {
        let limits = "Limit  Soft Limit  Hard Limit  Units\n\
                      Max processes             5                    6                    processes\n\
                      Max open files            1024                 524288               files\n";
        assert_eq!(max_fds(limits), Some(1024));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_knows_about_this_process() {
        let Process { cpu, resident_bytes, virtual_bytes, open_fds, threads, started, .. } =
            Process::now();
        assert!(cpu.is_some() && threads.unwrap() >= 1);
        assert!(resident_bytes.unwrap() > 0 && virtual_bytes.unwrap() > resident_bytes.unwrap());
        assert!(open_fds.unwrap() >= 3);
        assert!(started.unwrap() > Duration::from_secs(1_500_000_000));
    }
}
