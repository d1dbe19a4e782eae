//! Builds the devices of a scenario: from profiles, from recorded times, or shared with other databases.

use tierwise_device::random::SplitMix;
use tierwise_device::{Device, Nanos, Precondition, Profile};
use tierwise_work::Mechanism;

use crate::api::scenario::Scenario;
use crate::block::device_queue::DeviceModel;
use crate::block::empirical_device::EmpiricalDevice;
use crate::block::shared_device::SharedDevices;
use crate::program::prepared::Program;

/// Least number of observed times to model a device by them.
const MIN_OBSERVED_TIMES: usize = 30;

/// Each device of a scenario, with the latency of the path to it; shared ones are among `shared`, or added there.
pub(crate) fn scenario_devices(
    program: &Program,
    scenario: &Scenario,
    shared: &mut SharedDevices,
) -> Vec<(DeviceModel, Nanos)> {
    let mut seeds = SplitMix::new(scenario.seed ^ 0x0de5_1ce5);
    let device = |(index, profile): (usize, &Option<Profile>)| {
        let seed = seeds.draw();
        let known = program.devices.get(index).is_some_and(is_known);
        let recorded = program.profiles.get(index).and_then(Option::as_ref);
        let recorded = recorded.filter(|_| !(scenario.empirical_devices && known));
        match (profile, recorded) {
            (Some(profile), _) => {
                let build = || new_device(profile, scenario.worn, seed);
                match scenario.shared.get(&index) {
                    Some(key) => DeviceModel::Shared(shared.join(*key, build)),
                    None => DeviceModel::Profile(build()),
                }
            }
            (None, Some(profile)) => DeviceModel::Profile(profile.build(seed)),
            (None, None) => {
                let device = program.devices.get(index);
                let device = device.unwrap_or(&program.unknown_device_times);
                DeviceModel::Empirical(Box::new(EmpiricalDevice::new(device, seed)))
            }
        }
    };
    let devices = scenario.devices.iter().enumerate().map(device);
    let paths = (0..).map(|index| path_ns(program, scenario, index));
    devices.zip(paths).collect()
}

/// Latency of the path to the device with this index: roles that stay on their emulated disk keep its path, even if
/// others move to real devices. Observed times contain it.
fn path_ns(program: &Program, scenario: &Scenario, index: usize) -> Nanos {
    let emulated = match scenario.devices.get(index) {
        Some(Some(_)) => scenario.live.is_some(),
        _ => matches!(program.profiles.get(index), Some(Some(_))),
    };
    let off = scenario.empirical_devices || program.is_off(Mechanism::EmulatedPath);
    match emulated && !off {
        true => scenario.live.unwrap_or_default().path_ns,
        false => 0,
    }
}

/// A device that was not recorded; `worn`: in the state of long use.
fn new_device(profile: &Profile, worn: bool, seed: u64) -> Box<dyn Device> {
    let mut device = profile.build(seed);
    if worn {
        device.precondition(Precondition::Random { active_share: 1.0 });
    }
    device
}

/// Whether enough times of a device were observed to model it by them.
fn is_known(device: &tierwise_work::RecordedDevice) -> bool {
    device.reads.len() + device.writes.len() >= MIN_OBSERVED_TIMES
}
