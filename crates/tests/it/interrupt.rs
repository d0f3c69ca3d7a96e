//! Work that the caller stops, or that a forecast of its memory refuses.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::thread;

use opticoll::interrupt::{Stopped, check, interrupt, interruptible, parallel_map};
use opticoll::memory::MemoryLimitExceeded;

/// Goes on until it is stopped.
fn forever() {
    loop {
        check();
        thread::yield_now();
    }
}

#[test]
fn parts_on_other_threads_stop_with_the_whole() {
    let (begun, wait) = channel();
    let worker = thread::spawn(move || {
        interruptible(|| {
            parallel_map(0..3, |part| {
                if part == 0 {
                    begun.send(()).unwrap();
                }
                forever()
            });
        })
    });
    wait.recv().unwrap();
    interrupt();
    assert_eq!(worker.join().unwrap(), Err(Stopped::Interrupted));
}

#[test]
fn work_that_begins_after_an_interrupt_is_not_stopped_by_it() {
    assert_eq!(
        interruptible(|| interruptible(|| (interrupt(), check()).1)),
        Ok(Err(Stopped::Interrupted))
    );
    assert_eq!(interruptible(check), Ok(()));
}

#[test]
fn a_panic_is_no_interrupt() {
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        interruptible(|| std::panic::panic_any(7u32))
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref::<u32>(), Some(&7));
}

#[test]
fn a_forecast_is_said_with_the_limit() {
    let say = |bytes, limit| {
        let what = "a table".to_owned();
        MemoryLimitExceeded { what, bytes, limit }.to_string()
    };
    assert_eq!(
        say(31_250_000_000, 999),
        "a table needs about 31.25 GB of memory, and the limit is 999 B"
    );
    assert_eq!(
        say(u64::MAX, 123_456_789),
        "a table needs about 18.45 EB of memory, and the limit is 123 MB"
    );
}
