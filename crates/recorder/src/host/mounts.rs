//! The mount table of a process.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::host::processes::number_after;

/// One line of the kernel's mount table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    id: u64,
    pub point: PathBuf,
    pub device: (u32, u32),
    pub file_system: String,
    pub source: String,
    /// Options of the file system itself.
    options: String,
}

impl Mount {
    /// Upper directory of an overlay, as the mounting process saw it.
    pub fn upper(&self) -> Option<PathBuf> {
        if self.file_system != "overlay" {
            return None;
        }
        let options = format!(",{}", self.options);
        let (_, rest) = options.split_once(",upperdir=")?;
        let (mut path, mut escaped) = (String::new(), false);
        for letter in rest.chars() {
            match letter {
                '\\' if !escaped => escaped = true,
                ',' if !escaped => break,
                _ => {
                    path.push(letter);
                    escaped = false;
                }
            }
        }
        Some(path.into())
    }

    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(' ').collect();
        let end = fields.iter().position(|field| *field == "-")?;
        let (major, minor) = fields.get(2)?.split_once(':')?;
        Some(Self {
            id: fields.first()?.parse().ok()?,
            point: unescaped(fields.get(4)?).into(),
            device: (major.parse().ok()?, minor.parse().ok()?),
            file_system: unescaped(fields.get(end + 1)?),
            source: unescaped(fields.get(end + 2)?),
            options: unescaped(fields.get(end + 3)?),
        })
    }
}

/// All mounts that a process sees (this one if none is given), in mount order.
pub fn mounts(pid: Option<i32>) -> Vec<Mount> {
    let who = pid.map_or("self".to_owned(), |pid| pid.to_string());
    let table = fs::read(format!("/proc/{who}/mountinfo")).unwrap_or_default();
    let table = String::from_utf8_lossy(&table);
    table.lines().filter_map(Mount::parse).collect()
}

/// The mount that holds a path, as a process sees it; none where the process does not see it.
pub fn mount_of(path: &Path, pid: Option<i32>) -> io::Result<Option<Mount>> {
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_PATH).open(path)?;
    let told = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let id = number_after("mnt_id:", &told);
    Ok(mounts(pid).into_iter().find(|mount| Some(mount.id) == id))
}

/// Text of the mount table, in which `\040` stands for a space.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..3)
            .and_then(|code| u8::from_str_radix(code, 8).ok());
        match code {
            Some(code) => {
                plain.push(char::from(code));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_what_the_kernel_escapes() {
        let line = r"36 35 98:0 / /mnt/my\040disk rw shared:1 - ext4 /dev/sda1 rw,errors=continue";
        let mount = Mount::parse(line).unwrap();
        assert_eq!(mount.point, Path::new("/mnt/my disk"));
        let expected = ((98, 0), "ext4");
        assert_eq!((mount.device, mount.file_system.as_str()), expected);
        assert_eq!(mount.upper(), None);
        assert_eq!(Mount::parse("36 35"), None);
    }

    #[test]
    fn an_overlay_tells_its_upper_directory() {
        let line = r"1 2 0:9 / / rw - overlay overlay rw,lowerdir=/l,upperdir=/u\134,p,workdir=/w";
        assert_eq!(Mount::parse(line).unwrap().upper(), Some("/u,p".into()));
    }

    #[test]
    fn the_root_has_a_mount() {
        let found = mount_of(Path::new("/"), None).unwrap();
        assert_eq!(found.unwrap().point, Path::new("/"));
    }
}
