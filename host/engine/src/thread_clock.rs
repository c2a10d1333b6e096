//! CPU time of another thread of this process.
#![allow(unsafe_code, reason = "one system call")]

use std::time::Duration;

/// Number of the calling thread, as the kernel has it; 0 if /proc does not tell.
pub(crate) fn own_thread() -> u32 {
    thread_local! {
        static NUMBER: u32 = std::fs::read_link("/proc/thread-self")
            .ok()
            .and_then(|link| link.file_name()?.to_str()?.parse().ok())
            .unwrap_or(0);
    }
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

/// CPU time that a thread of this process has used; None if there is no such thread.
pub(crate) fn cpu_time(thread: u32) -> Option<Duration> {
    if thread == 0 {
        return None;
    }
    // As `pthread_getcpuclockid` makes it: the complement of the thread's number, a bit for "thread", 2 for its scheduled time.
    let clock = (!(thread as i32) << 3) | 4 | 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; a clock that there is not is answered by an error.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (result == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_threads_time_is_seen() {
        let (send, receive) = std::sync::mpsc::channel();
        let worker = std::thread::spawn(move || {
            send.send(own_thread()).expect("someone listens");
            while cpu_time(own_thread()).is_some_and(|time| time < Duration::from_millis(20)) {
                std::hint::spin_loop();
            }
        });
        let number = receive.recv().expect("a number");
        let before = cpu_time(number);
        assert!(before.is_some());
        worker.join().expect("it ends");
        assert_ne!(number, own_thread());
        assert_eq!(cpu_time(0), None);
    }
}
