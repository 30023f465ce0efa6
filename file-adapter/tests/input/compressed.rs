//! gzip and zstd: every member and frame, what may follow the last one, and damage.

use crate::harness::{Rig, gzip, numbered, texts, zstd};

/// F8 (rustar-aligner#217, async-compression#75): only the first gzip member was read.
#[test]
fn f8_all_members_and_frames_by_content() {
    let rig = Rig::new(&["a.log", "b.log"]);
    rig.write("a.log", gzip(&[b"a\nb", b"c\n", b"", b"d\n"]));
    let skippable = [&[0x5e, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"any"].concat();
    let frames = [skippable.clone(), zstd(&[b"e\n"]), skippable, zstd(&[b"f"])].concat();
    rig.write("b.log", frames);
    assert_eq!(rig.values(), ["a", "bc", "d", "e", "f"]);
}

/// F8: zeros behind the last member are padding; anything else ends the file with a warning.
#[test]
fn f8_what_follows_the_last_member() {
    for compress in [gzip, zstd] {
        let rig = Rig::new(&["a"]);
        rig.write("a", [compress(&[b"a\n"]), vec![0; 1000]].concat());
        let mut session = rig.start(None);
        assert_eq!(texts(&session.drain()), ["a"]);
        assert!(session.policies.is_empty());

        for garbage in ["garbage", "x"] {
            rig.write("a", [compress(&[b"a\n", b"b\n"]), garbage.into()].concat());
            let mut session = rig.start(None);
            assert_eq!(texts(&session.drain()), ["a", "b"]);
            assert_eq!(session.policy_names(), ["trailing_garbage"]);
        }
    }
    let rig = Rig::new(&["a"]);
    rig.write("a", [gzip(&[b"a\n"]), b"garbage".to_vec()].concat());
    let mut session = rig.start(None);
    session.drain();
    insta::assert_snapshot!(session.policies[0].1, @"DIR/a: what follows at byte 22 is not compressed data; the file was taken to end there");
}

/// F8: truncation is an error with its position, at every byte.
#[test]
fn f8_truncation() {
    for (compress, magic) in [(gzip as fn(&[&[u8]]) -> Vec<u8>, 3), (zstd, 4)] {
        let rig = Rig::new(&["a"]);
        let whole = compress(&[b"first\n", b"second\n"]);
        let first = compress(&[b"first\n"]).len();
        for len in 5..whole.len() {
            rig.write("a", &whole[..len]);
            let mut session = rig.start(None);
            if (first..first + magic).contains(&len) {
                // The end of a member, or too little of the next to be one.
                assert_eq!(texts(&session.drain()), ["first"]);
                assert_eq!(session.policies.len(), usize::from(len > first));
            } else {
                let error = session.failure();
                assert!(error.contains(&format!("ends at byte {len}")), "{len}: {error}");
            }
        }
    }
    let rig = Rig::new(&["a"]);
    let whole = gzip(&[b"first\n", b"second\n"]);
    rig.write("a", &whole[..whole.len() - 1]);
    insta::assert_snapshot!(rig.start(None).failure(), @"DIR/a: the file ends at byte 52, inside the gzip member that begins at byte 26; it is not complete");
}

#[test]
fn damage() {
    let rig = Rig::new(&["a"]);
    let mut bytes = gzip(&[b"first\n"]);
    let crc = bytes.len() - 8;
    bytes[crc] ^= 1;
    rig.write("a", &bytes);
    insta::assert_snapshot!(rig.start(None).failure(), @"DIR/a: the gzip member that begins at byte 0 cannot be decompressed: deflate decompression error: incorrect data check");
    let mut bytes = zstd(&[numbered(0..1000).as_bytes()]);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    rig.write("a", &bytes);
    let error = rig.start(None).failure();
    assert!(error.contains("zstd frame"), "{error}");
}

/// A frame may demand any amount of memory; what is given is bounded.
#[test]
fn a_window_that_is_too_large() {
    let rig = Rig::new(&["a"]);
    let mut encoder = zstd::stream::raw::Encoder::new(1).unwrap();
    encoder.set_parameter(zstd::stream::raw::CParameter::WindowLog(28)).unwrap();
    encoder.set_parameter(zstd::stream::raw::CParameter::EnableLongDistanceMatching(true)).unwrap();
    let mut writer = zstd::stream::zio::Writer::new(Vec::new(), encoder);
    std::io::Write::write_all(&mut writer, b"a\n").unwrap();
    writer.finish().unwrap();
    let (bytes, _) = writer.into_inner();
    rig.write("a", bytes);
    insta::assert_snapshot!(rig.start(None).failure(), @"DIR/a: the zstd frame that begins at byte 0 cannot be decompressed: it needs a window of more than 128 MiB; compress it again without --long or --ultra");
}

#[test]
fn large_members_and_many_small_ones() {
    let rig = Rig::new(&["*"]);
    let text = numbered(0..100_000);
    let pieces: Vec<_> = text.as_bytes().chunks(5000).collect();
    rig.write("a", gzip(&[text.as_bytes()]));
    rig.write("b", gzip(&pieces));
    rig.write("c", zstd(&pieces));
    let lines: Vec<_> = text.lines().collect();
    let values = rig.values();
    assert_eq!(values.len(), 3 * lines.len());
    assert!(values.chunks(lines.len()).all(|chunk| chunk == lines));
}
