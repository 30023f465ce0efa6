//! SQLite's file system with the disk of this thread in between: each call that changes a file is judged first, then
//! done by the file system of the operating system, or not.
#![allow(unsafe_code, reason = "SQLite takes a file system as a table of C functions only")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::size_of;
use std::ptr;
use std::sync::Once;

use rusqlite::ffi::{
    self, SQLITE_FULL, SQLITE_IOERR, SQLITE_IOERR_DELETE, SQLITE_IOERR_FSYNC,
    SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_WRITE, SQLITE_OK, sqlite3_file, sqlite3_int64,
    sqlite3_io_methods, sqlite3_vfs,
};

use super::{Call, Verdict, with};

/// An open file. Behind it, at [`INNER`], lies the one of the operating system's file system.
#[repr(C)]
struct File {
    base: sqlite3_file,
    /// Its name, which SQLite keeps as long as the file is open. Null: a file without a name.
    name: *const c_char,
}

/// Where the inner file begins; a multiple of every alignment that C knows.
const INNER: usize = size_of::<File>().next_multiple_of(16);

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    // Without the memory-mapped reading of version 3.
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// Every database that is opened from now on, in any thread, is on the disk of its thread.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the default file system is there once SQLite is initialised, which this call does, and lives for
        // ever. The copy is leaked, so it lives for ever too; its functions that are not replaced do not use their
        // file system argument beyond fields that are copied.
        let registered = unsafe {
            ffi::sqlite3_initialize();
            let inner = ffi::sqlite3_vfs_find(ptr::null());
            let mut outer = Box::new(ptr::read(inner));
            outer.zName = c"simulated".as_ptr();
            outer.pNext = ptr::null_mut();
            outer.szOsFile += INNER as c_int;
            outer.pAppData = inner.cast();
            outer.xOpen = Some(open);
            outer.xDelete = Some(delete);
            ffi::sqlite3_vfs_register(Box::into_raw(outer), 1)
        };
        assert_eq!(registered, SQLITE_OK, "SQLite takes the file system");
    });
}

/// The operating system's file system.
///
/// # Safety
/// `vfs` is the one that [`install`] registered.
unsafe fn inner_vfs(vfs: *mut sqlite3_vfs) -> *mut sqlite3_vfs {
    // SAFETY: as the caller promises, it is ours, and its data is what `install` put there.
    unsafe { (*vfs).pAppData.cast() }
}

/// The operating system's file behind one of ours.
///
/// # Safety
/// `file` was given to [`open`], so there are `szOsFile` bytes, `INNER` of them ours.
unsafe fn inner(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: as the caller promises, the sum stays inside the same allocation.
    unsafe { file.cast::<u8>().add(INNER).cast() }
}

/// The methods of the operating system's file.
///
/// # Safety
/// As for [`inner`], and the file is open.
unsafe fn methods(file: *mut sqlite3_file) -> &'static sqlite3_io_methods {
    // SAFETY: the table of an open file is a constant of SQLite's own.
    unsafe { &*(*inner(file)).pMethods }
}

/// Its name, if it is one of those that are watched: databases and logs, not what is shared between processes.
///
/// # Safety
/// As for [`inner`], and the file is open.
unsafe fn name(file: *mut sqlite3_file) -> Option<&'static str> {
    // SAFETY: the name is null or, as SQLite promises for `xOpen`, a string that stays until the file is closed; no
    // caller keeps it longer.
    unsafe {
        let name = (*file.cast::<File>()).name;
        if name.is_null() { None } else { CStr::from_ptr(name).to_str().ok() }
    }
}

/// How long the file is.
///
/// # Safety
/// As for [`methods`].
unsafe fn length(file: *mut sqlite3_file) -> u64 {
    let mut length: sqlite3_int64 = 0;
    // SAFETY: as the caller promises.
    unsafe {
        if let Some(file_size) = methods(file).xFileSize {
            file_size(inner(file), &raw mut length);
        }
    }
    length.unsigned_abs()
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls with the file system that was registered and `szOsFile` bytes for the file.
    unsafe {
        let real = inner_vfs(vfs);
        (*file).pMethods = ptr::null();
        (*file.cast::<File>()).name = name;
        let Some(open) = (*real).xOpen else { return SQLITE_IOERR };
        let opened = open(real, name, inner(file), flags, out_flags);
        if opened == SQLITE_OK {
            (*file).pMethods = &raw const METHODS;
        }
        opened
    }
}

unsafe extern "C" fn delete(vfs: *mut sqlite3_vfs, path: *const c_char, sync_dir: c_int) -> c_int {
    // SAFETY: SQLite calls with the file system that was registered and a string.
    unsafe {
        let verdict = with(|disk| disk.judge(Call::Delete));
        if verdict != Verdict::Done {
            return SQLITE_IOERR_DELETE;
        }
        if let Ok(path) = CStr::from_ptr(path).to_str() {
            with(|disk| disk.deleted(path));
        }
        let real = inner_vfs(vfs);
        (*real).xDelete.map_or(SQLITE_IOERR_DELETE, |delete| delete(real, path, sync_dir))
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    data: *const c_void,
    amount: c_int,
    at: sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite calls with an open file of ours and `amount` bytes of data.
    unsafe {
        let Some(inner_write) = methods(file).xWrite else { return SQLITE_IOERR_WRITE };
        let Some(path) = name(file) else { return inner_write(inner(file), data, amount, at) };
        let (length, start, bytes) = (length(file), at.unsigned_abs(), amount.unsigned_abs());
        let extends = start + u64::from(bytes) > length;
        let verdict = with(|disk| disk.judge(if extends { Call::Extend } else { Call::Overwrite }));
        let amount = match verdict {
            Verdict::Done => amount,
            // As much as had got through.
            Verdict::HalfDone => amount / 2,
            Verdict::Full => return SQLITE_FULL,
            Verdict::Failed | Verdict::Gone => return SQLITE_IOERR_WRITE,
        };
        let inner_read = methods(file).xRead;
        with(|disk| {
            disk.keep(path, length, start, u64::from(amount.unsigned_abs()), |from, old| {
                if let Some(read) = inner_read {
                    let (room, size) = (old.as_mut_ptr().cast(), old.len() as c_int);
                    read(inner(file), room, size, from.cast_signed());
                }
            });
        });
        let written = inner_write(inner(file), data, amount, at);
        if verdict == Verdict::HalfDone { SQLITE_IOERR_WRITE } else { written }
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: sqlite3_int64) -> c_int {
    // SAFETY: SQLite calls with an open file of ours.
    unsafe {
        let Some(inner_truncate) = methods(file).xTruncate else { return SQLITE_IOERR_TRUNCATE };
        let Some(path) = name(file) else { return inner_truncate(inner(file), size) };
        if with(|disk| disk.judge(Call::Truncate)) != Verdict::Done {
            return SQLITE_IOERR_TRUNCATE;
        }
        let (length, size_now) = (length(file), size.unsigned_abs());
        let inner_read = methods(file).xRead;
        with(|disk| {
            disk.keep(path, length, size_now, length.saturating_sub(size_now), |from, old| {
                if let Some(read) = inner_read {
                    let (room, size) = (old.as_mut_ptr().cast(), old.len() as c_int);
                    read(inner(file), room, size, from.cast_signed());
                }
            });
        });
        inner_truncate(inner(file), size)
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: SQLite calls with an open file of ours.
    unsafe {
        let Some(path) = name(file) else { return SQLITE_OK };
        let length = length(file);
        match with(|disk| disk.judge(Call::Sync)) {
            Verdict::Done | Verdict::Full => {}
            Verdict::Failed => {
                with(|disk| disk.sync_failed(path, length));
                return SQLITE_IOERR_FSYNC;
            }
            Verdict::HalfDone | Verdict::Gone => return SQLITE_IOERR_FSYNC,
        }
        with(|disk| disk.synced(path, length));
        methods(file).xSync.map_or(SQLITE_IOERR_FSYNC, |sync| sync(inner(file), flags))
    }
}

/// Passes a call on to the file of the operating system.
macro_rules! pass_on {
    ($($name:ident => $method:ident($($argument:ident: $type:ty),*);)*) => {$(
        unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $argument: $type)*) -> c_int {
            // SAFETY: SQLite calls with an open file of ours; the arguments are for the file inside.
            unsafe {
                methods(file).$method.map_or(SQLITE_IOERR, |call| call(inner(file) $(, $argument)*))
            }
        }
    )*};
}

pass_on! {
    close => xClose();
    read => xRead(data: *mut c_void, amount: c_int, at: sqlite3_int64);
    file_size => xFileSize(size: *mut sqlite3_int64);
    lock => xLock(level: c_int);
    unlock => xUnlock(level: c_int);
    check_reserved_lock => xCheckReservedLock(result: *mut c_int);
    file_control => xFileControl(operation: c_int, argument: *mut c_void);
    sector_size => xSectorSize();
    device_characteristics => xDeviceCharacteristics();
    shm_map => xShmMap(page: c_int, size: c_int, extend: c_int, place: *mut *mut c_void);
    shm_lock => xShmLock(offset: c_int, n: c_int, flags: c_int);
    shm_unmap => xShmUnmap(delete_flag: c_int);
}

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    // SAFETY: SQLite calls with an open file of ours.
    unsafe {
        if let Some(barrier) = methods(file).xShmBarrier {
            barrier(inner(file));
        }
    }
}
