//! Profiles: the parameters of one device, in TOML, with a source for every number.

mod number_source;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use toml::{Table, Value};

use crate::array::{ArrayMember, ArrayParams, DiskArray};
use crate::hdd::{HardDisk, HddParams};
use crate::params_error::{ParamsError, SectionResult};
use crate::profile_section::{ProfileKeys, ProfileSection};
use crate::ram::{Ram, RamParams};
use crate::ssd::{Ssd, SsdParams};
use crate::volume::{CloudVolume, VolumeParams};
use crate::{Device, SECTOR_BYTES};

pub use crate::profile_section::{ProfileKey, ValueForm};
pub use number_source::NumberSource;

/// The parameters of each kind of device.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceParams {
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
    params: DeviceParams,
    fields: Table,
    endurance_tb_written: Option<f64>,
    sources: Vec<NumberSource>,
    seeks: SeekTimes,
}

impl Profile {
    /// Reads a profile that refers to no other. `file` names it in errors; its stem is the profile's name.
    ///
    /// # Errors
    /// Text that is not TOML; unknown or missing keys; impossible values; numbers without a source.
    pub fn parse(text: &str, file: &str) -> Result<Self, ProfileError> {
        Self::parse_with(text, file, &ProfileLibrary::default())
    }

    /// As [`Profile::parse`], for a profile that may refer to others: `like = "NAME"` takes over every key of
    /// another that this one does not give itself.
    ///
    /// # Errors
    /// As [`Profile::parse`], and names that are not in the library.
    pub fn parse_with(
        text: &str,
        file: &str,
        library: &ProfileLibrary,
    ) -> Result<Self, ProfileError> {
        Self::read(text, file, library, &ProfileKeys::default())
            .map_err(|problem| ProfileError::new(problem, file))
    }

    /// The keys that a valid profile has or may have, with their bounds: what reading it asked for. Which keys
    /// there are depends on the kind of device and on a few words; the keys of many profiles make a schema.
    ///
    /// # Errors
    /// As [`Profile::parse_with`].
    pub fn keys(
        text: &str,
        file: &str,
        library: &ProfileLibrary,
    ) -> Result<Vec<ProfileKey>, ProfileError> {
        let keys = ProfileKeys::default();
        Self::read(text, file, library, &keys)
            .map_err(|problem| ProfileError::new(problem, file))?;
        Ok(keys.into_list())
    }

    fn read(
        text: &str,
        file: &str,
        library: &ProfileLibrary,
        keys: &ProfileKeys,
    ) -> SectionResult<Self> {
        let table = merged_profile_table(text, library)?;
        let mut root = ProfileSection::new(&table, keys);
        let kind = root.word("kind", &["hdd", "ssd", "ram", "volume", "array"])?;
        let summary = root.text("summary")?.to_owned();
        let params = match kind {
            "hdd" => DeviceParams::Hdd(Box::new(HddParams::parse(&mut root)?)),
            "ssd" => DeviceParams::Ssd(SsdParams::parse(&mut root)?),
            "volume" => DeviceParams::Volume(VolumeParams::parse(&mut root)?),
            "array" => {
                let member = read_member(&mut root, library)?;
                DeviceParams::Array(ArrayParams::parse(&mut root, member)?)
            }
            _ => DeviceParams::Ram(RamParams::parse(&mut root)?),
        };
        number_source::check_price(&mut root)?;
        number_source::check_ranges(&mut root, &table)?;
        let endurance_tb_written = read_endurance(&mut root)?;
        root.flag_or("ephemeral", false)?; // who places files reads it from the fields
        root.texts("source", number_source::SHORTEST)?;
        root.finish()?;
        Ok(Self {
            name: stem(file).to_owned(),
            summary,
            params,
            endurance_tb_written,
            sources: number_source::read_sources(&table)?,
            fields: table,
            seeks: SeekTimes::default(),
        })
    }

    /// Builds the model. The same seed gives the same times.
    ///
    /// The seed sets what varies in a real device: where the platters stand at time 0, which latency a
    /// request meets.
    pub fn build(&self, seed: u64) -> Box<dyn Device> {
        match &self.params {
            DeviceParams::Hdd(params) => {
                Box::new(HardDisk::new(params, seed, self.seeks.of(params)))
            }
            DeviceParams::Ssd(params) => Box::new(Ssd::new(params.clone())),
            DeviceParams::Ram(params) => Box::new(Ram::new(params.clone())),
            DeviceParams::Volume(params) => Box::new(CloudVolume::new(params.clone(), seed)),
            DeviceParams::Array(params) => Box::new(DiskArray::new(params, seed)),
        }
    }

    /// `hdd`, `ssd`, `ram`, `volume` or `array`.
    pub fn kind(&self) -> &'static str {
        match self.params {
            DeviceParams::Hdd(_) => "hdd",
            DeviceParams::Ssd(_) => "ssd",
            DeviceParams::Ram(_) => "ram",
            DeviceParams::Volume(_) => "volume",
            DeviceParams::Array(_) => "array",
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
            DeviceParams::Hdd(params) => params.capacity_sectors() * SECTOR_BYTES,
            DeviceParams::Ssd(params) => params.capacity_bytes,
            DeviceParams::Ram(params) => params.capacity_bytes,
            DeviceParams::Volume(params) => params.capacity_bytes,
            DeviceParams::Array(params) => params.capacity_sectors() * SECTOR_BYTES,
        };
        bytes / SECTOR_BYTES * SECTOR_BYTES
    }

    /// Whether completed writes may be lost with the power until a flush: a write cache that is not protected, or that
    /// the kernel takes for such. To others no flush is sent.
    pub fn write_cache(&self) -> bool {
        match &self.params {
            DeviceParams::Hdd(params) => params.write_cache,
            DeviceParams::Ssd(params) => params.write_cache(),
            DeviceParams::Ram(_) | DeviceParams::Volume(_) => false,
            DeviceParams::Array(params) => params.write_cache(),
        }
    }

    /// Whether positions are reached by moving and turning, so that near is fast.
    pub fn is_rotating(&self) -> bool {
        match &self.params {
            DeviceParams::Hdd(_) => true,
            DeviceParams::Array(params) => params.member.is_rotating(),
            DeviceParams::Ssd(_) | DeviceParams::Ram(_) | DeviceParams::Volume(_) => false,
        }
    }

    /// Whether requests reach it over a network: a volume, or an array of volumes.
    pub fn is_network_volume(&self) -> bool {
        match &self.params {
            DeviceParams::Volume(_) => true,
            DeviceParams::Array(params) => params.member.is_network_volume(),
            DeviceParams::Hdd(_) | DeviceParams::Ssd(_) | DeviceParams::Ram(_) => false,
        }
    }

    /// The parameters.
    pub fn params(&self) -> &DeviceParams {
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
    pub fn sources(&self) -> &[NumberSource] {
        &self.sources
    }
}

fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".toml").unwrap_or(name)
}

fn read_endurance(root: &mut ProfileSection<'_>) -> SectionResult<Option<f64>> {
    const KEY: &str = "endurance_tb_written";
    root.optional(KEY, |root| root.number(KEY, 1.0..=1e9))
}

/// What an array needs to know of its members.
impl ArrayMember for Profile {
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
fn read_member(root: &mut ProfileSection<'_>, library: &ProfileLibrary) -> SectionResult<Profile> {
    let name = root.text("member")?;
    let text = library.text("member", name)?;
    let mut member = Profile::parse_with(text, name, &library.inside(name))
        .map_err(|error| ParamsError::new(format!("member {error}"), error.fix))?;
    if !root.has("member_write_cache") || root.flag("member_write_cache")? == member.write_cache() {
        return Ok(member);
    }
    match &mut member.params {
        DeviceParams::Hdd(disk) if disk.write_cache => disk.write_cache = false,
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
pub struct ProfileLibrary {
    texts: BTreeMap<String, String>,
    /// Names of the members that are being read, one inside the other.
    inside: Vec<String>,
}

impl ProfileLibrary {
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
pub(crate) fn merged_profile_table(text: &str, library: &ProfileLibrary) -> SectionResult<Table> {
    merge_base_profile(text, library, &mut Vec::new())
}

fn merge_base_profile(
    text: &str,
    library: &ProfileLibrary,
    inside: &mut Vec<String>,
) -> SectionResult<Table> {
    let mut own: Table = toml::from_str(text).map_err(|error| {
        ParamsError::new(format!("not TOML: {}", one_line(&error)), "mend the syntax")
    })?;
    number_source::convert_rates(&mut own)?;
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
    let mut whole = merge_base_profile(library.text("like", &name)?, library, inside)?;
    merge_over(&mut whole, own);
    Ok(whole)
}

/// Refuses numbers whose source would be the other profile's text for its own numbers.
fn require_own_sources(own: &mut Table) -> SectionResult<()> {
    own.entry("source")
        .or_insert_with(|| Value::Table(Table::new()));
    number_source::read_sources(own).map(drop)
}

/// Replaces values of `base` by those of `over`; tables are merged key by key.
fn merge_over(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge_over(below, above),
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
pub(super) struct SeekTimes(Arc<OnceLock<Arc<[u32]>>>);

impl SeekTimes {
    /// Those of the parameters, which must be the profile's own.
    pub(super) fn of(&self, params: &HddParams) -> Arc<[u32]> {
        self.0.get_or_init(|| params.seek_ns()).clone()
    }
}

/// They follow from the parameters: profiles that differ in nothing else are equal.
impl PartialEq for SeekTimes {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
