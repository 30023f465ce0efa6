//! Bytes of records as a person reads them, in one line of limited width.
//!
//! Pure, but for asking the terminal for its width. What cannot be printed is escaped, so that no record moves the
//! cursor. A column is taken for each character; those of East Asian scripts take two, and are counted as one.

/// Stands where something was left out.
const GAP: char = '…';

/// The width where standard output is not a terminal.
const WIDTH: usize = 80;

/// How many columns a line of standard output has.
pub(crate) fn width() -> usize {
    let size = terminal_size::terminal_size_of(std::io::stdout());
    size.map_or(WIDTH, |(width, _)| usize::from(width.0)).max(WIDTH / 2)
}

/// The beginning of `bytes` in at most `width` columns. Absent is `null`; what could be taken for that, or not be
/// seen, is in quotes.
pub(crate) fn excerpt(bytes: Option<&[u8]>, width: usize) -> String {
    let Some(bytes) = bytes else { return "null".into() };
    let is_plain = !matches!(bytes, [] | b"null" | [b'"' | b' ', ..] | [.., b' ']);
    if is_plain {
        return cut(&escaped(bytes, width, false), width);
    }
    let mut text = format!("\"{}", escaped(bytes, width, true));
    text.push('"');
    cut(&text, width)
}

/// The surroundings of the byte `at`, in at most `width` columns.
pub(crate) fn excerpt_around(bytes: Option<&[u8]>, at: usize, width: usize) -> String {
    let before = width / 3;
    let Some(whole) = bytes.filter(|_| at > before) else { return excerpt(bytes, width) };
    let mut start = at.min(whole.len()) - before;
    while start > 0 && whole.get(start).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000) {
        start -= 1;
    }
    cut(&format!("{GAP}{}", escaped(&whole[start..], width, false)), width)
}

/// The first `width` columns of `text`, the last of them taken by a mark if there are more.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().nth(width).is_none() {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain([GAP]).collect()
}

/// The last `width` columns of `text`: of a path, the part that tells.
pub(crate) fn cut_front(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    [GAP].into_iter().chain(text.chars().skip(length - width.saturating_sub(1))).collect()
}

/// `text` filled up to `width` columns.
pub(crate) fn padded(text: &str, width: usize) -> String {
    format!("{text:<width$}")
}

/// More than `width` columns of `bytes`, if they have as many.
fn escaped(bytes: &[u8], width: usize, quoted: bool) -> String {
    // A character has at most four bytes, and at least one column.
    let bytes = &bytes[..bytes.len().min(4 * width + 8)];
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '"' if !quoted => text.push(char),
                '\'' => text.push(char),
                _ => text.extend(char.escape_debug()),
            }
        }
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: &str) {
        assert_eq!(excerpt(Some(bytes), 20), expected);
    }

    #[test]
    fn everything_is_told_apart() {
        assert_eq!(excerpt(None, 20), "null");
        check(b"", "\"\"");
        check(b"null", "\"null\"");
        check(b"\"\"", r#""\"\"""#);
        check(b" a", "\" a\"");
        check(b"{\"a\": 'b'}", "{\"a\": 'b'}");
        check("grün\t\u{1b}[2J\u{202e}".as_bytes(), r"grün\t\u{1b}[2J\u{2…");
        check(b"a\\x00", r"a\\x00");
        check(b"a\x00\xff", r"a\0\xff");
    }

    #[test]
    fn what_is_long_is_cut() {
        check(&[b'x'; 20], &"x".repeat(20));
        check(&[b'x'; 21], &format!("{}…", "x".repeat(19)));
        check("ü".repeat(500).as_bytes(), &format!("{}…", "ü".repeat(19)));
        assert_eq!(cut_front("a/long/path.log", 9), "…path.log");
        assert_eq!(cut_front("path.log", 9), "path.log");
        for width in 0..3 {
            assert!(excerpt(Some(b"long"), width).chars().count() <= width.max(1));
        }
    }

    #[test]
    fn surroundings_have_the_place_in_them() {
        let around = |text: &str, at| excerpt_around(Some(text.as_bytes()), at, 12);
        assert_eq!(around("abcdefghijklmnopqrstuvwxyz", 2), "abcdefghijk…");
        assert_eq!(around("abcdefghijklmnopqrstuvwxyz", 10), "…ghijklmnop…");
        assert_eq!(around("abcdefghijklmnopqrstuvwxyz", 26), "…wxyz");
        assert_eq!(around("abcdefghijklmnopqrstuvwxyz", 99), "…wxyz");
        assert_eq!(around("üüüüüüü", 11), "…üüüü");
        assert_eq!(excerpt_around(None, 5, 12), "null");
    }
}
