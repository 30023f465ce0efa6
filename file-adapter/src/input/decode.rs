//! An open file as one stream of decompressed bytes.
//!
//! gzip (every member) and zstd (every frame) are told by content, never by name; everything else is read
//! as it is. Memory is bounded whatever the file holds. Reaching the end is not final: a file may grow,
//! and the next read goes on. Not here: records.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use flate2::{Decompress, FlushDecompress, Status};
use lockgate_core::EndpointError;
use zstd::stream::raw::{DParameter, Decoder as Zstd, InBuffer, Operation, OutBuffer};

use super::identity::{Fingerprint, HEAD_BYTES, Inode, TAIL_BYTES, Tail};
use super::position::{Member, printable};

/// How much compressed input is read at once.
const INPUT_BYTES: usize = 64 << 10;
/// zstd: the largest window that is decompressed is 2 to this power, 128 MiB.
const WINDOW_LOG_MAX: u32 = 27;
/// gzip: the largest window there is.
const WINDOW_BITS: u8 = 15;

/// A file, open for reading at some place of its decompressed stream.
pub(super) struct Source {
    path: PathBuf,
    file: File,
    pos: u64,
    decoder: Option<Box<Decoder>>,
}

/// What can be said of a file by looking at its beginning.
pub(super) struct Opened {
    /// At the beginning of the stream.
    pub(super) source: Source,
    pub(super) inode: Inode,
    /// Its size on the disk.
    pub(super) len: u64,
    /// Its first decompressed bytes, [`HEAD_BYTES`] of them if there are that many.
    pub(super) head: Vec<u8>,
}

impl Opened {
    /// Whether too little is there to tell how the file is compressed.
    pub(super) fn is_undecided(&self) -> bool {
        let magics = [&GZIP_MAGIC[..], &ZSTD_MAGIC[..]];
        !self.source.is_compressed()
            && self.head.len() < 4
            && magics.iter().any(|magic| magic.starts_with(&self.head))
    }
}

impl Source {
    /// Opens a file and looks at its beginning.
    ///
    /// # Errors
    /// If it cannot be opened or read.
    pub(super) fn open(path: &Path) -> Result<Opened, EndpointError> {
        let unavailable = |error: io::Error| EndpointError::Unavailable {
            what: format!("cannot read {}", printable(path)),
            source: error.into(),
        };
        // Looked at first: opening a pipe would wait for a writer.
        if !fs::metadata(path).map_err(unavailable)?.is_file() {
            return Err(unavailable(io::Error::other("it is not a regular file")));
        }
        let file = File::open(path).map_err(unavailable)?;
        let metadata = file.metadata().map_err(unavailable)?;
        let mut source = Self { path: path.to_owned(), file, pos: 0, decoder: None };
        let mut head = vec![0; HEAD_BYTES];
        let len = source.fill(&mut head)?;
        head.truncate(len);
        if let Some(format) = Format::of(&head) {
            source.decoder = Some(Box::new(Decoder::new(format, Member::first())?));
            head.resize(HEAD_BYTES, 0);
            // Damage is reported when the file is read, with its place.
            let len = source.fill(&mut head).unwrap_or(0);
            head.truncate(len);
        }
        source.seek(0, None)?;
        Ok(Opened { source, inode: Inode::of(&metadata), len: metadata.len(), head })
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, EndpointError> {
        self.pos = 0;
        let mut len = 0;
        while len < buffer.len() {
            match self.read(&mut buffer[len..])? {
                0 => break,
                n => len += n,
            }
        }
        self.pos = 0;
        Ok(len)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file has another name now.
    pub(super) fn set_path(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// The offset of the next byte in the decompressed stream.
    pub(super) fn pos(&self) -> u64 {
        self.pos
    }

    pub(super) fn is_compressed(&self) -> bool {
        self.decoder.is_some()
    }

    /// Its size on the disk now.
    pub(super) fn raw_len(&self) -> Result<u64, EndpointError> {
        Ok(self.file.metadata().map_err(|error| self.storage(0, error))?.len())
    }

    /// When it was last written to.
    pub(super) fn modified(&self) -> Result<SystemTime, EndpointError> {
        let modified = self.file.metadata().and_then(|metadata| metadata.modified());
        modified.map_err(|error| self.storage(0, error))
    }

    /// Whether no name leads to it any more.
    pub(super) fn is_unlinked(&self) -> Result<bool, EndpointError> {
        let metadata = self.file.metadata().map_err(|error| self.storage(0, error))?;
        Ok(metadata.nlink() == 0)
    }

    /// How far the file on the disk has been read.
    pub(super) fn raw_pos(&self) -> u64 {
        self.decoder
            .as_ref()
            .map_or(self.pos, |decoder| decoder.raw + decoder.unread().len() as u64)
    }

    /// Reads some bytes; 0 if there are no more for now.
    ///
    /// # Errors
    /// If the disk fails or the data is damaged.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, EndpointError> {
        let n = match &mut self.decoder {
            None => read_at(&self.file, buffer, self.pos).map_err(|e| self.storage(self.pos, e))?,
            Some(decoder) => decoder.read(&self.file, buffer, self.pos).map_err(|failure| {
                match failure {
                    Failure::Disk { raw, error } => storage(&self.path, raw, error),
                    Failure::Damage { format, member, why } => {
                        let path = printable(&self.path);
                        EndpointError::Data(format!(
                            "{path}: the {format} that begins at byte {member} cannot be decompressed: \
                             {why}"
                        ))
                    }
                }
            })?,
        };
        self.pos += n as u64;
        Ok(n)
    }

    /// Members that have begun since this was last asked.
    pub(super) fn take_members(&mut self) -> Vec<Member> {
        self.decoder.as_mut().map(|decoder| std::mem::take(&mut decoder.begun)).unwrap_or_default()
    }

    /// Where something that is not compressed data follows the last member, if that was just found.
    pub(super) fn take_garbage(&mut self) -> Option<u64> {
        self.decoder.as_mut()?.garbage.take()
    }

    /// Whether the stream is complete if the file ends here.
    ///
    /// # Errors
    /// If the file ends inside a member.
    pub(super) fn check_end(&mut self) -> Result<(), EndpointError> {
        let Some(decoder) = &mut self.decoder else { return Ok(()) };
        match decoder.state {
            State::Inside => {
                let (path, raw) =
                    (printable(&self.path), decoder.raw + decoder.unread().len() as u64);
                let (format, start) = (decoder.format, decoder.member_raw);
                Err(EndpointError::Data(format!(
                    "{path}: the file ends at byte {raw}, inside the {format} that begins at byte \
                     {start}; it is not complete"
                )))
            }
            State::Between if !decoder.unread().is_empty() => {
                decoder.state = State::Over;
                decoder.garbage = Some(decoder.raw);
                Ok(())
            }
            State::Between | State::Over => Ok(()),
        }
    }

    /// Goes back to before `offset`, to where reading has to begin to get there and to see the last bytes
    /// before it: the start of `member` (the first one if not given), or a few bytes before.
    ///
    /// # Errors
    /// If `member` does not begin before.
    pub(super) fn rewind(
        &mut self,
        offset: u64,
        member: Option<Member>,
    ) -> Result<(), EndpointError> {
        let Some(decoder) = &self.decoder else {
            self.pos = offset.saturating_sub(TAIL_BYTES as u64);
            return Ok(());
        };
        let member = member.unwrap_or_else(Member::first);
        if member.start > offset {
            let path = printable(&self.path);
            let start = member.start;
            return Err(EndpointError::Data(format!(
                "{path}: the stored position is damaged: byte {offset} is not after byte {start}"
            )));
        }
        self.decoder = Some(Box::new(Decoder::new(decoder.format, member)?));
        self.pos = member.start;
        Ok(())
    }

    /// Goes to a place of the decompressed stream. Gives the last bytes before the place.
    ///
    /// # Errors
    /// If the stream ends before, or cannot be read.
    pub(super) fn seek(
        &mut self,
        offset: u64,
        member: Option<Member>,
    ) -> Result<Tail, EndpointError> {
        self.rewind(offset, member)?;
        let mut tail = Tail::at(self.pos);
        let mut skipped = vec![0; INPUT_BYTES.min((offset - self.pos) as usize)];
        while self.pos < offset {
            let pos = self.pos;
            let want = skipped.len().min((offset - pos) as usize);
            let n = self.read(&mut skipped[..want])?;
            if n == 0 {
                let path = printable(&self.path);
                return Err(EndpointError::Data(format!(
                    "{path}: the file ends at byte {pos} now, before byte {offset}"
                )));
            }
            tail.push(pos, &skipped[..n]);
        }
        Ok(tail)
    }

    /// Reads everything, from the beginning: how long the stream is, and its last bytes.
    ///
    /// # Errors
    /// If it cannot be read, or is not complete.
    pub(super) fn read_to_end(&mut self) -> Result<(u64, Tail), EndpointError> {
        let mut tail = self.seek(0, None)?;
        let mut buffer = vec![0; INPUT_BYTES];
        loop {
            let pos = self.pos;
            match self.read(&mut buffer)? {
                0 => break,
                n => tail.push(pos, &buffer[..n]),
            }
        }
        self.check_end()?;
        Ok((self.pos, tail))
    }

    /// Up to `len` bytes of the file on the disk.
    pub(super) fn bytes_at(&self, raw: u64, len: usize) -> Result<Vec<u8>, EndpointError> {
        bytes_at(&self.file, raw, len).map_err(|error| self.storage(raw, error))
    }

    fn storage(&self, raw: u64, error: io::Error) -> EndpointError {
        storage(&self.path, raw, error)
    }
}

fn storage(path: &Path, raw: u64, error: io::Error) -> EndpointError {
    let what = format!("reading {} at byte {raw}", printable(path));
    EndpointError::Storage { what, source: error.into() }
}

fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn bytes_at(file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut filled = 0;
    while filled < len {
        match read_at(file, &mut bytes[filled..], offset + filled as u64)? {
            0 => break,
            n => filled += n,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Gzip,
    Zstd,
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Format::Gzip => "gzip member",
            Format::Zstd => "zstd frame",
        })
    }
}

/// The third byte is the only compression method there is.
const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The lowest four bits of the first byte are free.
const ZSTD_SKIPPABLE_MAGIC: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];

impl Format {
    fn of(head: &[u8]) -> Option<Self> {
        [Format::Gzip, Format::Zstd].into_iter().find(|format| format.begins(head))
    }

    fn magic_bytes(self) -> usize {
        match self {
            Format::Gzip => GZIP_MAGIC.len(),
            Format::Zstd => ZSTD_MAGIC.len(),
        }
    }

    fn begins(self, bytes: &[u8]) -> bool {
        match self {
            Format::Gzip => bytes.starts_with(&GZIP_MAGIC),
            Format::Zstd => bytes.first_chunk::<4>().is_some_and(|[first, rest @ ..]| {
                [*first, rest[0], rest[1], rest[2]] == ZSTD_MAGIC
                    || [first & 0xf0, rest[0], rest[1], rest[2]] == ZSTD_SKIPPABLE_MAGIC
            }),
        }
    }
}

enum Engine {
    Gzip(Decompress),
    Zstd(Zstd<'static>),
}

enum Failure {
    Disk { raw: u64, error: io::Error },
    Damage { format: Format, member: u64, why: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before a member, or at the end.
    Between,
    /// Inside a member.
    Inside,
    /// What follows is not compressed data.
    Over,
}

/// **Invariant:** `from <= to <= input.len()`, and `raw` is the place in the file of `input[from]`.
struct Decoder {
    format: Format,
    engine: Engine,
    state: State,
    input: Box<[u8]>,
    from: usize,
    to: usize,
    raw: u64,
    member_raw: u64,
    begun: Vec<Member>,
    garbage: Option<u64>,
}

impl Decoder {
    fn new(format: Format, member: Member) -> Result<Self, EndpointError> {
        let engine = Engine::new(format).map_err(|error| {
            EndpointError::Bug(format!("cannot set up a decompressor for a {format}: {error}"))
        })?;
        Ok(Self {
            format,
            engine,
            state: State::Between,
            input: vec![0; INPUT_BYTES].into_boxed_slice(),
            from: 0,
            to: 0,
            raw: member.raw,
            member_raw: member.raw,
            begun: vec![member],
            garbage: None,
        })
    }

    fn unread(&self) -> &[u8] {
        &self.input[self.from..self.to]
    }

    fn consume(&mut self, n: usize) {
        self.from += n;
        self.raw += n as u64;
    }

    /// Reads more input behind what is unread. Gives whether there was any.
    fn refill(&mut self, file: &File) -> Result<bool, Failure> {
        self.input.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        let raw = self.raw + self.to as u64;
        let n = read_at(file, &mut self.input[self.to..], raw)
            .map_err(|error| Failure::Disk { raw, error })?;
        self.to += n;
        Ok(n > 0)
    }

    fn read(&mut self, file: &File, buffer: &mut [u8], pos: u64) -> Result<usize, Failure> {
        let mut done = 0;
        loop {
            match self.state {
                State::Over => return Ok(done),
                State::Between => {
                    if !self.begin(file)? {
                        return Ok(done);
                    }
                }
                State::Inside => {}
            }
            let (consumed, produced, ended) = self.step(&mut buffer[done..])?;
            done += produced;
            if ended {
                self.end(file, pos + done as u64)?;
            }
            if done == buffer.len() {
                self.settle(file, pos + done as u64)?;
                return Ok(done);
            }
            if !ended && consumed == 0 && produced == 0 && !self.refill(file)? {
                return Ok(done);
            }
        }
    }

    /// Sees the end of the member, if that is all that is left of it: the place where the next one
    /// begins is known as soon as the last record before it is.
    fn settle(&mut self, file: &File, pos: u64) -> Result<(), Failure> {
        while self.state == State::Inside {
            let (consumed, _, ended) = self.step(&mut [])?;
            if ended {
                self.end(file, pos)?;
            } else if consumed == 0 && (!self.unread().is_empty() || !self.refill(file)?) {
                break;
            }
        }
        Ok(())
    }

    /// Between members: looks at what comes next. Gives whether a member begins.
    fn begin(&mut self, file: &File) -> Result<bool, Failure> {
        loop {
            // Files are padded with zeros by tapes and some copying programs.
            let zeros = self.unread().iter().take_while(|byte| **byte == 0).count();
            self.consume(zeros);
            if self.unread().len() >= self.format.magic_bytes() {
                break;
            }
            // What is there may become a magic number when the file grows.
            if !self.refill(file)? {
                return Ok(false);
            }
        }
        if !self.format.begins(self.unread()) {
            self.state = State::Over;
            self.garbage = Some(self.raw);
            return Ok(false);
        }
        self.engine.reset().map_err(|why| self.damage(why))?;
        self.state = State::Inside;
        self.member_raw = self.raw;
        Ok(true)
    }

    /// A member has ended: the next one, if any, begins here.
    fn end(&mut self, file: &File, pos: u64) -> Result<(), Failure> {
        self.state = State::Between;
        let raw = self.raw;
        let len = raw.min(TAIL_BYTES as u64);
        let tail = bytes_at(file, raw - len, len as usize)
            .map_err(|error| Failure::Disk { raw, error })?;
        let member = Member { raw, start: pos, raw_tail: Fingerprint::of(&tail) };
        // Of members that hold nothing the last is the best to go on from.
        match self.begun.last_mut() {
            Some(last) if last.start == pos => *last = member,
            _ => self.begun.push(member),
        }
        Ok(())
    }

    fn step(&mut self, buffer: &mut [u8]) -> Result<(usize, usize, bool), Failure> {
        let input = &self.input[self.from..self.to];
        let step = self.engine.step(input, buffer).map_err(|why| self.damage(why))?;
        self.consume(step.0);
        Ok(step)
    }

    fn damage(&self, why: String) -> Failure {
        Failure::Damage { format: self.format, member: self.member_raw, why }
    }
}

fn describe(error: io::Error) -> String {
    let text = error.to_string();
    // zstd's own words do not say what to do.
    if text.contains("too much memory") {
        return format!(
            "it needs a window of more than {} MiB; compress it again without --long or --ultra",
            (1u64 << WINDOW_LOG_MAX) >> 20
        );
    }
    text
}

impl Engine {
    fn new(format: Format) -> io::Result<Self> {
        Ok(match format {
            Format::Gzip => Engine::Gzip(Decompress::new_gzip(WINDOW_BITS)),
            Format::Zstd => {
                let mut zstd = Zstd::new()?;
                zstd.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
                Engine::Zstd(zstd)
            }
        })
    }

    fn reset(&mut self) -> Result<(), String> {
        match self {
            Engine::Gzip(gzip) => *gzip = Decompress::new_gzip(WINDOW_BITS),
            Engine::Zstd(zstd) => zstd.reinit().map_err(|error| error.to_string())?,
        }
        Ok(())
    }

    /// Decompresses a little: how much was taken and given, and whether the member has ended.
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize, bool), String> {
        match self {
            Engine::Gzip(gzip) => {
                let before = (gzip.total_in(), gzip.total_out());
                let status = gzip
                    .decompress(input, output, FlushDecompress::None)
                    .map_err(|error| error.to_string())?;
                let taken = (gzip.total_in() - before.0) as usize;
                let given = (gzip.total_out() - before.1) as usize;
                Ok((taken, given, status == Status::StreamEnd))
            }
            Engine::Zstd(zstd) => {
                let mut input = InBuffer::around(input);
                let mut output = OutBuffer::around(output);
                let hint = zstd.run(&mut input, &mut output).map_err(describe)?;
                Ok((input.pos(), output.pos(), hint == 0))
            }
        }
    }
}
