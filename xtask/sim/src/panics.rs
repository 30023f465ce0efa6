//! Panics of the simulated program, wherever they are caught: a task that panics would otherwise end in silence.

use std::cell::RefCell;
use std::panic;
use std::sync::Once;

thread_local! {
    static FIRST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on the first panic of each thread is kept.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        panic::set_hook(Box::new(|info| {
            FIRST.with(|first| {
                first.borrow_mut().get_or_insert_with(|| info.to_string());
            });
        }));
    });
}

/// The first panic of this thread since this was last asked.
pub(crate) fn take() -> Option<String> {
    FIRST.with(|first| first.borrow_mut().take())
}
