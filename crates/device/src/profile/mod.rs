//! Profiles: the parameters of one device, in TOML, with a source for every number.

mod source;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use toml::{Table, Value};

use crate::array::{Array, ArrayParams, Member};
use crate::hdd::{Disk, HddParams};
use crate::problem::{ParamsError, SectionResult};
use crate::ram::{Ram, RamParams};
use crate::section::{Keys, Section};
use crate::ssd::{Ssd, SsdParams};
use crate::volume::{Volume, VolumeParams};
use crate::{Device, SECTOR_BYTES};

pub use crate::section::{Form, Key};
pub use source::Source;

/// The parameters of each kind of device.
#[derive(Clone, Debug, PartialEq)]
pub enum Params {
    /// A hard disk.
    Hdd(Box<HddParams>),
    /// A solid-state disk.
    Ssd(SsdParams),
    /// Memory behind a link.
    Ram(RamParams),
    /// A volume of a cloud.
    Volume(VolumeParams),
    /// Several devices as one.
    Array(ArrayParams<Profile>),
}

/// A device that can be built: validated parameters and where they come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    name: String,
    summary: String,
    params: Params,
    fields: Table,
    endurance_tb_written: Option<f64>,
    sources: Vec<Source>,
    seeks: Seeks,
}

impl Profile {
    /// Reads a profile that refers to no other. `file` names it in errors; its stem is the profile's name.
    ///
    /// # Errors
    /// Text that is not TOML; unknown or missing keys; impossible values; numbers without a source.
    pub fn parse(text: &str, file: &str) -> Result<Self, ProfileError> {
        Self::parse_with(text, file, &Library::default())
    }

    /// As [`Profile::parse`], for a profile that may refer to others: `like = "NAME"` takes over every key of
    /// another that this one does not give itself.
    ///
    /// # Errors
    /// As [`Profile::parse`], and names that are not in the library.
    pub fn parse_with(text: &str, file: &str, library: &Library) -> Result<Self, ProfileError> {
        Self::read(text, file, library, &Keys::default())
            .map_err(|problem| ProfileError::new(problem, file))
    }

    /// The keys that a valid profile has or may have, with their bounds: what reading it asked for. Which keys
    /// there are depends on the kind of device and on a few words; the keys of many profiles make a schema.
    ///
    /// # Errors
    /// As [`Profile::parse_with`].
    pub fn keys(text: &str, file: &str, library: &Library) -> Result<Vec<Key>, ProfileError> {
        let keys = Keys::default();
        Self::read(text, file, library, &keys)
            .map_err(|problem| ProfileError::new(problem, file))?;
        Ok(keys.into_list())
    }

    fn read(text: &str, file: &str, library: &Library, keys: &Keys) -> SectionResult<Self> {
        let table = table(text, library)?;
        let mut root = Section::new(&table, keys);
        let kind = root.word("kind", &["hdd", "ssd", "ram", "volume", "array"])?;
        let summary = root.text("summary")?.to_owned();
        let params = match kind {
            "hdd" => Params::Hdd(Box::new(HddParams::parse(&mut root)?)),
            "ssd" => Params::Ssd(SsdParams::parse(&mut root)?),
            "volume" => Params::Volume(VolumeParams::parse(&mut root)?),
            "array" => {
                let member = read_member(&mut root, library)?;
                Params::Array(ArrayParams::parse(&mut root, member)?)
            }
            _ => Params::Ram(RamParams::parse(&mut root)?),
        };
        source::check_price(&mut root)?;
        source::check_ranges(&mut root, &table)?;
        let endurance_tb_written = read_endurance(&mut root)?;
        root.flag_or("ephemeral", false)?; // who places files reads it from the fields
        root.texts("source", source::SHORTEST)?;
        root.finish()?;
        Ok(Self {
            name: stem(file).to_owned(),
            summary,
            params,
            endurance_tb_written,
            sources: source::read(&table)?,
            fields: table,
            seeks: Seeks::default(),
        })
    }

    /// Builds the model. The same seed gives the same times.
    ///
    /// The seed sets what varies in a real device: where the platters stand at time 0, which latency a
    /// request meets.
    pub fn build(&self, seed: u64) -> Box<dyn Device> {
        match &self.params {
            Params::Hdd(params) => Box::new(Disk::new(params, seed, self.seeks.of(params))),
            Params::Ssd(params) => Box::new(Ssd::new(params.clone())),
            Params::Ram(params) => Box::new(Ram::new(params.clone())),
            Params::Volume(params) => Box::new(Volume::new(params.clone(), seed)),
            Params::Array(params) => Box::new(Array::new(params, seed)),
        }
    }

    /// `hdd`, `ssd`, `ram`, `volume` or `array`.
    pub fn kind(&self) -> &'static str {
        match self.params {
            Params::Hdd(_) => "hdd",
            Params::Ssd(_) => "ssd",
            Params::Ram(_) => "ram",
            Params::Volume(_) => "volume",
            Params::Array(_) => "array",
        }
    }

    /// The stem of the file it was read from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One line for people.
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// The addressable size, in bytes, a multiple of [`SECTOR_BYTES`].
    pub fn capacity_bytes(&self) -> u64 {
        let bytes = match &self.params {
            Params::Hdd(params) => params.capacity_sectors() * SECTOR_BYTES,
            Params::Ssd(params) => params.capacity_bytes,
            Params::Ram(params) => params.capacity_bytes,
            Params::Volume(params) => params.capacity_bytes,
            Params::Array(params) => params.capacity_sectors() * SECTOR_BYTES,
        };
        bytes / SECTOR_BYTES * SECTOR_BYTES
    }

    /// Whether completed writes may be lost with the power until a flush: a write cache that is not protected, or that
    /// the kernel takes for such. To others no flush is sent.
    pub fn write_cache(&self) -> bool {
        match &self.params {
            Params::Hdd(params) => params.write_cache,
            Params::Ssd(params) => params.write_cache(),
            Params::Ram(_) | Params::Volume(_) => false,
            Params::Array(params) => params.write_cache(),
        }
    }

    /// Whether positions are reached by moving and turning, so that near is fast.
    pub fn is_rotating(&self) -> bool {
        match &self.params {
            Params::Hdd(_) => true,
            Params::Array(params) => params.member.is_rotating(),
            Params::Ssd(_) | Params::Ram(_) | Params::Volume(_) => false,
        }
    }

    /// Whether requests reach it over a network: a volume, or an array of volumes.
    pub fn is_network_volume(&self) -> bool {
        match &self.params {
            Params::Volume(_) => true,
            Params::Array(params) => params.member.is_network_volume(),
            Params::Hdd(_) | Params::Ssd(_) | Params::Ram(_) => false,
        }
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Every key of the file, with those that it took over from another by `like`.
    pub fn fields(&self) -> &Table {
        &self.fields
    }

    /// Bytes the host may write under the maker's guarantee, in 10^12 bytes, as far as the profile says.
    pub fn endurance_tb_written(&self) -> Option<f64> {
        self.endurance_tb_written
    }

    /// Where the numbers come from.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }
}

fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".toml").unwrap_or(name)
}

fn read_endurance(root: &mut Section<'_>) -> SectionResult<Option<f64>> {
    const KEY: &str = "endurance_tb_written";
    root.optional(KEY, |root| root.number(KEY, 1.0..=1e9))
}

/// What an array needs to know of its members.
impl Member for Profile {
    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes()
    }

    fn write_cache(&self) -> bool {
        self.write_cache()
    }

    fn is_rotating(&self) -> bool {
        self.is_rotating()
    }

    fn build(&self, seed: u64) -> Box<dyn Device> {
        self.build(seed)
    }
}

/// The profile that an array names as its member.
fn read_member(root: &mut Section<'_>, library: &Library) -> SectionResult<Profile> {
    let name = root.text("member")?;
    let text = library.text("member", name)?;
    let mut member = Profile::parse_with(text, name, &library.inside(name))
        .map_err(|error| ParamsError::new(format!("member {error}"), error.fix))?;
    if !root.has("member_write_cache") || root.flag("member_write_cache")? == member.write_cache() {
        return Ok(member);
    }
    match &mut member.params {
        Params::Hdd(disk) if disk.write_cache => disk.write_cache = false,
        _ => {
            return Err(ParamsError::new(
                "member_write_cache can only turn off the write cache of a disk",
                "remove it or name another member",
            ));
        }
    }
    Ok(member)
}

// What can be wrong with a profile.

/// A profile that cannot be used. The message names the file, the key and its value; the fix says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {message}")]
pub struct ProfileError {
    /// The file, as the caller named it.
    pub file: String,
    /// What is wrong, naming the key.
    pub message: String,
    /// What to do about it, in the imperative.
    pub fix: String,
}

impl ProfileError {
    pub(crate) fn new(problem: ParamsError, file: &str) -> Self {
        Self {
            file: file.to_owned(),
            message: problem.message,
            fix: problem.fix,
        }
    }
}

// Profiles that a profile refers to by name: its base profile (`like`), the members of an array.

/// Texts of profiles by name. The caller reads the files; this crate reads none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    texts: BTreeMap<String, String>,
    /// Names of the members that are being read, one inside the other.
    inside: Vec<String>,
}

impl Library {
    /// A library of these texts, by name.
    pub fn new(texts: BTreeMap<String, String>) -> Self {
        let inside = Vec::new();
        Self { texts, inside }
    }

    /// The library as a member of that name sees it.
    pub(crate) fn inside(&self, name: &str) -> Self {
        let mut library = self.clone();
        library.inside.push(name.to_owned());
        library
    }

    /// The text of a profile that `key` names.
    pub(crate) fn text(&self, key: &str, name: &str) -> SectionResult<&str> {
        if self.inside.iter().any(|outer| outer == name) {
            return Err(ParamsError::new(
                format!("{key} = \"{name}\" leads back to itself"),
                "name another profile",
            ));
        }
        self.texts.get(name).map(String::as_str).ok_or_else(|| {
            ParamsError::new(
                format!("{key} = \"{name}\" is not a known profile"),
                "name a profile that ships, or a TOML file beside this one",
            )
        })
    }
}

/// The table of a profile, on top of the profile that it is `like`, if any.
pub(crate) fn table(text: &str, library: &Library) -> SectionResult<Table> {
    table_within(text, library, &mut Vec::new())
}

fn table_within(text: &str, library: &Library, inside: &mut Vec<String>) -> SectionResult<Table> {
    let mut own: Table = toml::from_str(text).map_err(|error| {
        ParamsError::new(format!("not TOML: {}", one_line(&error)), "mend the syntax")
    })?;
    source::convert(&mut own)?;
    let Some(like) = own.remove("like") else {
        return Ok(own);
    };
    let Some(name) = like.as_str().map(str::to_owned) else {
        return Err(ParamsError::new(
            format!("like is a {}", like.type_str()),
            "give the name of a profile",
        ));
    };
    if inside.contains(&name) {
        return Err(ParamsError::new(
            format!("like = \"{name}\" leads back to itself"),
            "name another profile",
        ));
    }
    require_own_sources(&mut own)?;
    inside.push(name.clone());
    let mut whole = table_within(library.text("like", &name)?, library, inside)?;
    lay_over(&mut whole, own);
    Ok(whole)
}

/// Refuses numbers whose source would be the other profile's text for its own numbers.
fn require_own_sources(own: &mut Table) -> SectionResult<()> {
    own.entry("source")
        .or_insert_with(|| Value::Table(Table::new()));
    source::read(own).map(drop)
}

/// Replaces values of `base` by those of `over`; tables are merged key by key.
fn lay_over(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => lay_over(below, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

fn one_line(error: &toml::de::Error) -> String {
    error
        .to_string()
        .split('\n')
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

// Seek times by distance. They take longer to compute than all else of a disk, so the disks built from a
// profile or from its copies share one table.

/// Seek times of a profile's disks, in nanoseconds, computed when the first disk is built.
#[derive(Clone, Debug, Default)]
pub(super) struct Seeks(Arc<OnceLock<Arc<[u32]>>>);

impl Seeks {
    /// Those of the parameters, which must be the profile's own.
    pub(super) fn of(&self, params: &HddParams) -> Arc<[u32]> {
        self.0.get_or_init(|| params.seek_ns()).clone()
    }
}

/// They follow from the parameters: profiles that differ in nothing else are equal.
impl PartialEq for Seeks {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
