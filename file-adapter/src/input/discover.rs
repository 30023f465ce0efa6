//! Which files the configured paths and patterns name, in a stated order.
//!
//! Entries count in the order given, the matches of one pattern in the order of their paths' bytes, and
//! every file once, under its first path, however many links and patterns lead to it. `*`, `?` and
//! `[..]` stay within one name; `**` stands for any number of directories; `{a,b}` for either. As in a
//! shell, a leading dot is matched only by a dot. An entry that names an existing file is that file, even
//! if it reads like a pattern.
//!
//! Not here: the content of files.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use lockgate_core::EndpointError;

use super::identity::Inode;
use super::position::printable;

/// What the configuration names.
#[derive(Debug)]
pub(super) struct Patterns {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    path: PathBuf,
    /// Empty for an entry without wildcards.
    globs: Vec<Glob>,
}

#[derive(Debug)]
struct Glob {
    base: PathBuf,
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Name(OsString),
    Matching { matcher: GlobMatcher, dot: bool },
    AnyDepth,
}

/// A regular file that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) inode: Inode,
    /// Its size on the disk.
    pub(super) len: u64,
    /// When it was last changed: seconds and nanoseconds.
    pub(super) changed: (i64, i64),
}

/// What is there now.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) found: Vec<Found>,
    /// The entries that led to nothing.
    pub(super) missing: Vec<Missing>,
    /// Where nothing could be looked for, and why.
    pub(super) unreadable: Vec<(PathBuf, EndpointError)>,
}

/// An entry that led to nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Missing {
    File(PathBuf),
    Match(PathBuf),
}

impl Missing {
    pub(super) fn error(&self) -> EndpointError {
        let (what, source) = match self {
            Missing::File(path) => (
                format!("cannot read {}", printable(path)),
                "there is no such file; check the path, or set `follow: true` to wait for it",
            ),
            Missing::Match(pattern) => (
                format!("no file matches {}", printable(pattern)),
                "check the pattern, or set `follow: true` to wait for files",
            ),
        };
        EndpointError::Unavailable { what, source: source.into() }
    }
}

impl Patterns {
    /// # Errors
    /// If an entry is not absolute, or not a pattern.
    pub(super) fn new(entries: &[String]) -> Result<Self, EndpointError> {
        let entries = entries.iter().map(|entry| Entry::new(entry)).collect::<Result<_, _>>()?;
        Ok(Self { entries })
    }

    /// Whether a file at `path`, which need not exist, would be found.
    pub(super) fn name(&self, path: &Path) -> bool {
        let names = |glob: &Glob| {
            let below = path.strip_prefix(&glob.base);
            below.is_ok_and(|below| parts_name(&glob.parts, &below.iter().collect::<Vec<_>>()))
        };
        self.entries.iter().any(|entry| entry.path == path || entry.globs.iter().any(names))
    }

    /// Looks at the disk.
    ///
    /// # Errors
    /// If an entry cannot be looked at, or names something that is not a file.
    pub(super) fn scan(&self) -> Result<Scan, EndpointError> {
        let mut scan = Scan::default();
        let mut seen = HashSet::new();
        for entry in &self.entries {
            let matches = entry.matches(&mut scan.unreadable)?;
            if matches.is_empty() {
                let path = entry.path.clone();
                let missing = if entry.globs.is_empty() { Missing::File } else { Missing::Match };
                scan.missing.push(missing(path));
            }
            scan.found.extend(matches.into_iter().filter(|found| seen.insert(found.inode)));
        }
        Ok(scan)
    }

    /// The directories in which something can change, and whether also below them.
    pub(super) fn directories(&self) -> Vec<(PathBuf, bool)> {
        let mut directories = Vec::new();
        for entry in &self.entries {
            if entry.globs.is_empty() {
                directories.extend(entry.path.parent().map(|parent| (parent.to_owned(), false)));
            }
            let globs = entry.globs.iter();
            directories.extend(globs.map(|glob| (glob.base.clone(), glob.parts.len() > 1)));
        }
        directories.sort();
        directories.dedup();
        directories
    }
}

impl Entry {
    fn new(text: &str) -> Result<Self, EndpointError> {
        let refuse = |why: &dyn std::fmt::Display| {
            EndpointError::Configuration(format!("paths: {text}: {why}"))
        };
        let path = PathBuf::from(text);
        if !path.is_absolute() {
            return Err(refuse(&"must be absolute"));
        }
        if !has_wildcards(text) {
            return Ok(Self { path, globs: Vec::new() });
        }
        let globs = alternatives(text).into_iter().map(|text| Glob::new(&text));
        let globs = globs.collect::<Result<_, _>>().map_err(|error| refuse(&error.kind()))?;
        Ok(Self { path, globs })
    }

    fn matches(
        &self,
        unreadable: &mut Vec<(PathBuf, EndpointError)>,
    ) -> Result<Vec<Found>, EndpointError> {
        match regular(&self.path)? {
            Look::File(found) => return Ok(vec![found]),
            Look::Other(metadata) if self.globs.is_empty() => {
                let path = printable(&self.path);
                return Err(EndpointError::Configuration(if metadata.is_dir() {
                    format!("{path} is a directory; name its files, for example {path}/*")
                } else {
                    format!("{path} is not a regular file")
                }));
            }
            Look::Other(_) | Look::Nothing => {}
        }
        let mut found = Vec::new();
        for glob in &self.globs {
            let mut walk =
                Walk { seen: HashSet::new(), found: &mut found, unreadable: &mut *unreadable };
            walk.below(&glob.base, &glob.parts);
        }
        found.sort_by(|a, b| a.path.as_os_str().as_bytes().cmp(b.path.as_os_str().as_bytes()));
        Ok(found)
    }
}

impl Glob {
    fn new(text: &str) -> Result<Self, globset::Error> {
        let mut base = PathBuf::from("/");
        let mut parts = Vec::new();
        for name in text.split('/').filter(|name| !name.is_empty()) {
            if name == "**" {
                parts.push(Part::AnyDepth);
            } else if has_wildcards(name) {
                let glob = GlobBuilder::new(name).literal_separator(true).build()?;
                let dot = name.starts_with('.');
                parts.push(Part::Matching { matcher: glob.compile_matcher(), dot });
            } else if parts.is_empty() {
                base.push(name);
            } else {
                parts.push(Part::Name(name.into()));
            }
        }
        // `**` alone means the files below; braces can leave a path without any wildcard.
        if let Some(Part::AnyDepth) = parts.last() {
            let glob = GlobBuilder::new("*").build()?;
            parts.push(Part::Matching { matcher: glob.compile_matcher(), dot: false });
        }
        if parts.is_empty()
            && let Some(name) = base.file_name().map(OsString::from)
        {
            base.pop();
            parts.push(Part::Name(name));
        }
        Ok(Self { base, parts })
    }
}

/// Whether `parts` match the components `path`.
fn parts_name(parts: &[Part], path: &[&OsStr]) -> bool {
    let (part, rest) = match (parts.split_first(), path.split_first()) {
        (None, _) => return path.is_empty(),
        (Some((Part::AnyDepth, parts)), _) => {
            return (0..=path.len()).any(|skipped| parts_name(parts, &path[skipped..]));
        }
        (Some(_), None) => return false,
        (Some((part, parts)), Some((name, path))) => (part_names(part, name), (parts, path)),
    };
    part && parts_name(rest.0, rest.1)
}

fn part_names(part: &Part, name: &OsStr) -> bool {
    match part {
        Part::Name(expected) => expected == name,
        Part::Matching { matcher, dot } => {
            (*dot || !name.as_bytes().starts_with(b".")) && matcher.is_match(name)
        }
        Part::AnyDepth => true,
    }
}

fn has_wildcards(text: &str) -> bool {
    text.contains(['*', '?', '[', '{', '\\'])
}

/// The patterns without braces that a pattern with braces stands for.
fn alternatives(pattern: &str) -> Vec<String> {
    let mut depth = 0;
    let mut open = 0;
    let mut commas = Vec::new();
    let mut escaped = false;
    for (i, byte) in pattern.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'{' => {
                if depth == 0 {
                    open = i;
                }
                depth += 1;
            }
            b',' if depth == 1 => commas.push(i),
            b'}' if depth == 1 => {
                let mut bounds = vec![open];
                bounds.append(&mut commas);
                bounds.push(i);
                let (before, after) = (&pattern[..open], &pattern[i + 1..]);
                let choices = bounds.windows(2).map(|bounds| &pattern[bounds[0] + 1..bounds[1]]);
                let whole = choices.map(|choice| format!("{before}{choice}{after}"));
                return whole.flat_map(|pattern| alternatives(&pattern)).collect();
            }
            b'}' if depth > 1 => depth -= 1,
            _ => {}
        }
    }
    vec![pattern.to_owned()]
}

enum Look {
    File(Found),
    Other(Metadata),
    Nothing,
}

fn regular(path: &Path) -> Result<Look, EndpointError> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(Look::File(Found {
            path: path.to_owned(),
            inode: Inode::of(&metadata),
            len: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })),
        Ok(metadata) => Ok(Look::Other(metadata)),
        Err(error) if leads_nowhere(&error) => Ok(Look::Nothing),
        Err(error) => Err(unreadable(path, error)),
    }
}

/// Where the file `inode` is now, if it is still in the directory of `path`: rotation may have moved it to
/// where no pattern finds it.
pub(super) fn beside(path: &Path, inode: Inode) -> Option<PathBuf> {
    let entries = std::fs::read_dir(path.parent()?).ok()?;
    let same = entries.flatten().filter(|entry| entry.ino() == inode.ino);
    let is_it = |metadata: Metadata| metadata.is_file() && Inode::of(&metadata) == inode;
    same.map(|entry| entry.path()).find(|path| std::fs::symlink_metadata(path).is_ok_and(is_it))
}

/// Absent, or a link that leads nowhere or in a circle.
fn leads_nowhere(error: &io::Error) -> bool {
    const ELOOP: i32 = 40;
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(ELOOP)
}

fn unreadable(path: &Path, error: io::Error) -> EndpointError {
    EndpointError::Unavailable {
        what: format!("cannot read {}", printable(path)),
        source: error.into(),
    }
}

/// Collects files.
struct Walk<'a> {
    /// The directories already visited, each with what remained to be matched there, so that a loop of
    /// links ends at once.
    seen: HashSet<(Inode, usize)>,
    found: &'a mut Vec<Found>,
    unreadable: &'a mut Vec<(PathBuf, EndpointError)>,
}

impl Walk<'_> {
    /// The files below `dir` that match `parts`.
    fn below(&mut self, dir: &Path, parts: &[Part]) {
        if let Err(error) = self.look(dir, parts) {
            self.unreadable.push((dir.to_owned(), error));
        }
    }

    fn look(&mut self, dir: &Path, parts: &[Part]) -> Result<(), EndpointError> {
        let Some((part, rest)) = parts.split_first() else { return Ok(()) };
        match std::fs::metadata(dir) {
            Ok(metadata) if metadata.is_dir() => {
                if !self.seen.insert((Inode::of(&metadata), parts.len())) {
                    return Ok(());
                }
            }
            Ok(_) => return Ok(()),
            Err(error) if leads_nowhere(&error) => return Ok(()),
            Err(error) => return Err(unreadable(dir, error)),
        }
        match part {
            Part::Name(name) => self.reach(dir.join(name), rest),
            Part::Matching { matcher, dot } => {
                for name in names(dir)? {
                    let hidden = name.as_bytes().starts_with(b".");
                    if (*dot || !hidden) && matcher.is_match(&name) {
                        self.reach(dir.join(&name), rest);
                    }
                }
            }
            Part::AnyDepth => {
                self.below(dir, rest);
                for name in names(dir)? {
                    if !name.as_bytes().starts_with(b".") {
                        self.below(&dir.join(name), parts);
                    }
                }
            }
        }
        Ok(())
    }

    fn reach(&mut self, path: PathBuf, rest: &[Part]) {
        if !rest.is_empty() {
            return self.below(&path, rest);
        }
        match regular(&path) {
            Ok(Look::File(file)) => self.found.push(file),
            Ok(Look::Other(_) | Look::Nothing) => {}
            Err(error) => self.unreadable.push((path, error)),
        }
    }
}

/// The names in a directory, in the order of their bytes.
fn names(dir: &Path) -> Result<Vec<OsString>, EndpointError> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if leads_nowhere(&error) => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(dir, error)),
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names: Vec<_> = names.collect::<Result<_, _>>().map_err(|e| unreadable(dir, e))?;
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Tree {
        dir: tempfile::TempDir,
    }

    impl Tree {
        fn new(files: &[&str]) -> Self {
            let tree = Self { dir: tempfile::tempdir().unwrap() };
            for file in files {
                let path = tree.dir.path().join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, *file).unwrap();
            }
            tree
        }

        fn link(&self, target: &str, link: &str) {
            symlink(self.dir.path().join(target), self.dir.path().join(link)).unwrap();
        }

        fn scan(&self, patterns: &[&str]) -> Result<Scan, EndpointError> {
            let root = printable(self.dir.path());
            let patterns: Vec<_> = patterns.iter().map(|entry| format!("{root}/{entry}")).collect();
            Patterns::new(&patterns)?.scan()
        }

        fn check(&self, patterns: &[&str], expected: &[&str]) {
            let found = self.scan(patterns).unwrap().found;
            let root = self.dir.path();
            let found = found.iter().map(|found| printable(found.path.strip_prefix(root).unwrap()));
            assert_eq!(found.collect::<Vec<_>>(), expected, "{patterns:?}");
        }

        fn refuse(&self, patterns: &[&str]) -> String {
            let error = self.scan(patterns).unwrap_err().to_string();
            error.replace(&printable(self.dir.path()), "ROOT")
        }
    }

    #[test]
    fn entries_in_order_and_matches_by_name() {
        let tree = Tree::new(&["b.log", "a.log", "c.txt", ".hidden.log", "sub/d.log"]);
        tree.check(&["*.log"], &["a.log", "b.log"]);
        tree.check(&["c.txt", "*"], &["c.txt", "a.log", "b.log"]);
        tree.check(&["?.log"], &["a.log", "b.log"]);
        tree.check(&["[!a].log"], &["b.log"]);
        tree.check(&["{c.txt,a.log}"], &["a.log", "c.txt"]);
        tree.check(&["{sub/*,a.{log,txt}}"], &["a.log", "sub/d.log"]);
        tree.check(&["*/d.log"], &["sub/d.log"]);
        tree.check(&[".*.log"], &[".hidden.log"]);
    }

    #[test]
    fn any_depth() {
        let tree = Tree::new(&["a.log", "x/b.log", "x/y/c.log", "x/.z/d.log"]);
        tree.check(&["**/*.log"], &["a.log", "x/b.log", "x/y/c.log"]);
        tree.check(&["**/y/*.log"], &["x/y/c.log"]);
        tree.check(&["x/**"], &["x/b.log", "x/y/c.log"]);
    }

    /// A file was read once for each of its links (beats#1686), and a loop of links for ever.
    #[test]
    fn each_file_once_and_loops_cost_nothing() {
        let tree = Tree::new(&["x/a.log", "x/b.log"]);
        std::fs::hard_link(tree.dir.path().join("x/a.log"), tree.dir.path().join("x/c.log"))
            .unwrap();
        tree.link("x/b.log", "x/0.log");
        tree.link("x", "x/loop");
        tree.link("x/self", "x/self");
        tree.link("nowhere", "x/dangling.log");
        tree.check(&["**/*.log", "x/a.log"], &["x/0.log", "x/a.log"]);
    }

    #[test]
    fn a_file_whose_name_reads_like_a_pattern() {
        let tree = Tree::new(&["a[1].log", "a1.log"]);
        tree.check(&["a[1].log"], &["a[1].log"]);
        std::fs::remove_file(tree.dir.path().join("a[1].log")).unwrap();
        tree.check(&["a[1].log"], &["a1.log"]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let tree = Tree::new(&["a.log", "dir/x"]);
        let scan = tree.scan(&["a.log", "b.log", "*.txt", "dir*"]).unwrap();
        let texts = scan.missing.iter().map(|missing| missing.error().to_string());
        let texts: Vec<_> = texts.collect();
        let texts = texts.join("\n").replace(&printable(tree.dir.path()), "ROOT");
        insta::assert_snapshot!(texts, @"
        cannot read ROOT/b.log: there is no such file; check the path, or set `follow: true` to wait for it
        no file matches ROOT/*.txt: check the pattern, or set `follow: true` to wait for files
        no file matches ROOT/dir*: check the pattern, or set `follow: true` to wait for files
        ");
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let tree = Tree::new(&["dir/x"]);
        insta::assert_snapshot!(tree.refuse(&["dir"]), @"ROOT/dir is a directory; name its files, for example ROOT/dir/*");
        insta::assert_snapshot!(tree.refuse(&["[a-"]), @"paths: ROOT/[a-: unclosed character class; missing ']'");
        let relative = Patterns::new(&["in/*.log".into()]).unwrap_err().to_string();
        insta::assert_snapshot!(relative, @"paths: in/*.log: must be absolute");
    }
}
