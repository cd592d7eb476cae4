//! Certificates and keys from files that a configuration names. It may come from a panel, so the file may be anything.

use rustls_pki_types::pem::PemObject;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// Larger files are refused: all public authorities together have a quarter of it.
const MOST_BYTES: u64 = 1024 * 1024;

/// All objects of one kind in a file; the error names the file.
pub(crate) fn all<T: PemObject>(file: impl AsRef<Path>) -> Result<Vec<T>, String> {
    let file = file.as_ref();
    let bytes = read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let all: Result<_, _> = T::pem_slice_iter(&bytes).collect();
    all.map_err(|error| format!("{}: {error}", file.display()))
}

/// The first object of that kind in a file; the error names the file.
pub(super) fn first<T: PemObject>(file: &str) -> Result<T, String> {
    let bytes = read(Path::new(file)).map_err(|error| format!("{file}: {error}"))?;
    T::from_pem_slice(&bytes).map_err(|error| format!("{file}: {error}"))
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    let refused = |reason: String| Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    // A device may have no end, and a pipe nobody at its other one.
    if !fs::metadata(file)?.is_file() {
        return refused("is no regular file".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(file)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return refused(format!("is larger than {} MiB", MOST_BYTES >> 20));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls_pki_types::CertificateDer;

    #[test]
    fn what_has_no_end_or_is_no_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        nix::unistd::mkfifo(path("pipe").as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::write(path("long"), vec![b'\n'; MOST_BYTES as usize + 1]).unwrap();
        let cases = [
            ("/dev/zero".to_owned(), "is no regular file"),
            (path("pipe"), "is no regular file"),
            (path("."), "is no regular file"),
            (path("long"), "is larger than 1 MiB"),
            (path("absent"), "No such file"),
        ];
        for (file, reason) in cases {
            for error in [all::<CertificateDer<'_>>(&file).err(), first::<CertificateDer<'_>>(&file).err()] {
                let error = error.unwrap();
                assert!(error.starts_with(&file) && error.contains(reason), "{error}");
            }
        }
        fs::write(path("full"), vec![b'\n'; MOST_BYTES as usize]).unwrap();
        assert_eq!(all::<CertificateDer<'_>>(&path("full")), Ok(Vec::new()));
    }
}
