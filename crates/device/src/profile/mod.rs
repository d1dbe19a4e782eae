//! Profiles: the parameters of one device, in TOML, with a source for every number.

mod error;
mod library;
mod mebibytes;
mod price;
mod range;
mod seeks;
mod source;

pub use error::ProfileError;
pub use library::Library;
pub use source::Source;

use seeks::Seeks;
use toml::Table;

use crate::array::{Array, ArrayParams, Member};
use crate::hdd::{Disk, HddParams};
use crate::problem::{Problem, SectionResult};
use crate::ram::{Ram, RamParams};
pub use crate::section::{Form, Key};
use crate::section::{Keys, Section};
use crate::ssd::{Ssd, SsdParams};
use crate::volume::{Volume, VolumeParams};
use crate::{Device, SECTOR_BYTES};

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
        let table = library::table(text, library)?;
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
        price::check(&mut root)?;
        range::check(&mut root, &table)?;
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
            Params::Hdd(params) => Box::new(Disk::sharing(params, seed, self.seeks.of(params))),
            Params::Ssd(params) => Box::new(Ssd::of(params.clone())),
            Params::Ram(params) => Box::new(Ram::of(params.clone())),
            Params::Volume(params) => Box::new(Volume::of(params.clone(), seed)),
            Params::Array(params) => Box::new(Array::of(params, seed)),
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

    /// Whether completed writes may be lost with the power until a flush: a write cache that is not protected.
    pub fn write_cache(&self) -> bool {
        match &self.params {
            Params::Hdd(params) => params.write_cache,
            Params::Ssd(params) => params.cache_sectors > 0 && !params.power_loss_protection,
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
        .map_err(|error| Problem::new(format!("member {error}"), error.fix))?;
    if !root.has("member_write_cache") || root.flag("member_write_cache")? == member.write_cache() {
        return Ok(member);
    }
    match &mut member.params {
        Params::Hdd(disk) if disk.write_cache => disk.write_cache = false,
        _ => {
            return Err(Problem::new(
                "member_write_cache can only turn off the write cache of a disk",
                "remove it or name another member",
            ));
        }
    }
    Ok(member)
}
