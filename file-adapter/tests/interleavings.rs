//! What threads hand over by hand, with the threads in many orders: the shipped file, compiled with the types of
//! `shuttle`, which decides who goes on whenever one of them is used.

#[path = "../src/input/hint.rs"]
mod hint;

/// In place of `src/sync.rs`.
mod sync {
    pub(crate) use shuttle::sync::atomic;
}

use hint::Hint;
use shuttle::sync::mpsc::channel;
use shuttle::sync::{Arc, Mutex};
use shuttle::thread::spawn;

/// The last change of many is seen, though not each of them is told.
#[test]
fn the_last_change_is_seen() {
    let scene = || {
        let (hint, disk) = (Arc::new(Hint::default()), Arc::new(Mutex::new(0)));
        let (told, wakes) = channel();
        let change = || {
            let (hint, disk, told) = (hint.clone(), disk.clone(), told.clone());
            spawn(move || {
                for _ in 0..2 {
                    *disk.lock().unwrap() += 1;
                    if hint.changed() {
                        told.send(()).unwrap();
                    }
                }
            })
        };
        let changing = [change(), change()];
        // As `Live::look_around`.
        let mut seen = 0;
        while seen < 4 {
            wakes.recv().unwrap();
            hint.looking();
            seen = *disk.lock().unwrap();
        }
        changing.into_iter().for_each(|thread| thread.join().unwrap());
    };
    shuttle::check_random(scene, 1500);
    shuttle::check_pct(scene, 1500, 3);
}
