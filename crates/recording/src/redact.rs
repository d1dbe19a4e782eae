//! A recording without its owner's names, to be given to others.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use crate::{About, ChainLink, File, Recording, Thread, ThreadClass};

/// Writes the same word for the same name, another one in every redaction.
#[derive(Default)]
struct Redactor {
    key: RandomState,
}

impl Recording {
    /// The same work without paths, names of devices, and names of programs that are not the engine's.
    ///
    /// Each part of a path becomes a word of its own, so that a directory still holds its files. Without this
    /// recording nobody can find a name by trying: the key is random, and forgotten.
    #[must_use]
    pub fn redacted(self) -> Self {
        let redactor = Redactor::default();
        Self {
            about: redactor.about(self.about),
            threads: self
                .threads
                .into_iter()
                .map(|thread| redactor.thread(thread))
                .collect(),
            files: self
                .files
                .into_iter()
                .map(|file| redactor.file(file))
                .collect(),
            ..self
        }
    }
}

impl Redactor {
    fn word(&self, name: &str) -> String {
        format!("{:016x}", self.key.hash_one(name))
    }

    /// The name of a program; none stays none.
    fn program(&self, name: &str) -> String {
        match name {
            "" => String::new(),
            name => self.word(name),
        }
    }

    fn path(&self, path: &str) -> String {
        let parts = path.split('/').map(|part| match part {
            "" => String::new(),
            name => self.word(name),
        });
        parts.collect::<Vec<_>>().join("/")
    }

    /// A sentence: replaces everything in it that looks like a path.
    fn sentence(&self, text: &str) -> String {
        let words = text.split(' ').map(|word| match word.contains('/') {
            true => self.path(word),
            false => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    fn file(&self, file: File) -> File {
        let path = match file.path.split_once(":[") {
            // A socket or a pipe has a number, not a name.
            Some((kind, _)) if !kind.contains('/') => kind.to_owned(),
            _ => self.path(&file.path),
        };
        File { path, ..file }
    }

    fn thread(&self, thread: Thread) -> Thread {
        let name = match thread.class {
            ThreadClass::Session | ThreadClass::Client | ThreadClass::Other => {
                self.word(&thread.name)
            }
            _ => thread.name,
        };
        Thread { name, ..thread }
    }

    /// A device below two others keeps one word, so that it is seen to be one.
    fn link(&self, link: ChainLink) -> ChainLink {
        ChainLink {
            name: link.name.map(|name| self.word(&name)),
            label: None,
            ..link
        }
    }

    fn about(&self, about: About) -> About {
        let numbered = about.devices.into_iter().enumerate();
        let devices = numbered.map(|(at, device)| crate::Device {
            name: format!("disk{at}"),
            mount: device.mount.map(|mount| self.path(&mount)),
            chain: device
                .chain
                .into_iter()
                .map(|link| self.link(link))
                .collect(),
            ..device
        });
        let settings = about.settings.into_iter();
        let checks = about.checks.into_iter().map(|check| crate::Check {
            detail: self.sentence(&check.detail),
            ..check
        });
        let clients = about.clients.into_iter();
        let foreign = about.foreign_programs.into_iter();
        About {
            engine: self.sentence(&about.engine),
            clients: clients
                .map(|client| crate::ClientProgram {
                    program: self.program(&client.program),
                    ..client
                })
                .collect(),
            foreign_programs: foreign
                .map(|program| crate::ForeignProgram {
                    program: self.program(&program.program),
                    ..program
                })
                .collect(),
            devices: devices.collect(),
            relations: Vec::new(),
            settings: settings
                .map(|(name, value)| (name, self.sentence(&value)))
                .collect(),
            checks: checks.collect(),
            warnings: about
                .warnings
                .iter()
                .map(|text| self.sentence(text))
                .collect(),
            ..about
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_words_that_keep_their_order() {
        let redactor = Redactor::default();
        let (folder, file) = (
            redactor.path("/srv/secret"),
            redactor.path("/srv/secret/base/1"),
        );
        assert!(file.starts_with(&format!("{folder}/")));
        assert!(!file.contains("secret") && !file.contains("base"));
        let told = redactor.sentence("files below /srv/secret are shared");
        assert_eq!(told, format!("files below {folder} are shared"));
    }

    #[test]
    fn a_chain_keeps_its_kinds_and_tells_no_name() {
        let link = |kind: &str, name: &str| ChainLink {
            kind: kind.to_owned(),
            name: Some(name.to_owned()),
            label: Some("secret".to_owned()),
            ..ChainLink::default()
        };
        let device = |links| crate::Device {
            chain: links,
            ..crate::Device::default()
        };
        let about = About {
            devices: vec![
                device(vec![link("LVM volume", "dm-0"), link("disk", "sda")]),
                device(vec![link("LVM volume", "dm-1"), link("disk", "sda")]),
            ],
            ..About::default()
        };
        let redacted = Redactor::default().about(about);
        let (one, other) = (&redacted.devices[0].chain, &redacted.devices[1].chain);
        assert_eq!(one[0].kind, "LVM volume");
        assert_eq!(one[1], other[1]);
        assert_ne!(one[0].name, other[0].name);
        let told = serde_json::to_string(&redacted).unwrap();
        assert!(!told.contains("secret") && !told.contains("sda") && !told.contains("dm-"));
    }

    #[test]
    fn other_programs_have_no_names() {
        let about = About {
            clients: vec![crate::ClientProgram {
                program: "checkout-api".to_owned(),
                sessions: 8,
                ..crate::ClientProgram::default()
            }],
            foreign_programs: vec![crate::ForeignProgram {
                program: "secret-miner".to_owned(),
                pids: vec![7],
                cpu_share: 0.3,
            }],
            ..About::default()
        };
        let redacted = Redactor::default().about(about);
        let shown = serde_json::to_string(&redacted).unwrap();
        assert!(!shown.contains("checkout-api") && !shown.contains("miner"));
        assert_eq!(redacted.clients[0].sessions, 8);
        assert_eq!(redacted.foreign_programs[0].cpu_share, 0.3);
    }

    #[test]
    fn another_redaction_has_other_words() {
        let once = Redactor::default().word("secret");
        assert_ne!(once, Redactor::default().word("secret"));
    }
}
