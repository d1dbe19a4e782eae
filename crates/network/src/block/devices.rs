//! The devices of a scenario: from profiles, from recorded times, or shared with other databases; and the path to those
//! that are emulated.
//!
//! Models: a request to an emulated disk takes the path's latency, or the device's time if that is longer, and what the
//! path takes longer with the requests outstanding, as measured when the disk was made; less the sender's own processor
//! time, which that measurement contains and which the sender spends besides. Source:
//! crates/disk/src/pacer.rs: the emulation completes a request earlier by its path's latency, but never before the
//! request arrived. So the model's clock runs ahead of virtual time by at most that latency, and only to a due event.
//! Reads and writes of network volumes pass the gate of their machine first, all in one queue; what waits there is not at
//! its device yet.
//! Leaves out: processor time of the emulation, and of a real device's interrupts.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use tierwise_device::random::SplitMix;
use tierwise_device::volume::InstanceGate;
use tierwise_device::{Completion, Device, Nanos, Op, Precondition, Profile, Request};
use tierwise_work::constants::{PATH_NS, REQUEST_CPU_NS};
use tierwise_work::{EmulatedPath, Mechanism, RecordedDevice};

use crate::api::scenario::Scenario;
use crate::block::empirical_device::EmpiricalDevice;
use crate::kernel::clock::RequestId;
use crate::program::Program;
use tierwise_recording::UserError;

/// Least number of observed times to model a device by them.
const MIN_OBSERVED_TIMES: usize = 30;
/// Bits of a request's number that its database gave; the upper ones name the database.
const ID_BITS: u32 = 32;

/// The model that serves a device's requests.
enum DeviceModel {
    /// The model of a profile.
    Profile(Box<dyn Device>),
    /// Recorded times.
    Empirical(Box<EmpiricalDevice>),
    /// A model that other databases use too.
    Shared(SharedDevice),
}

/// The gate of a scenario's machine, which its network volumes share.
#[derive(Clone)]
struct MachineGate(Rc<RefCell<InstanceGate>>);

/// A request that its machine's gate holds back.
struct HeldRequest {
    at: Nanos,
    id: RequestId,
    request: Request,
    log: bool,
}

/// A device and its clock.
pub(crate) struct DeviceQueue {
    device: DeviceModel,
    /// Of a network volume, if its machine has limits.
    gate: Option<MachineGate>,
    held: VecDeque<HeldRequest>,
    clock: Nanos,
    next: Nanos,
    /// The path to an emulated disk; none for other devices.
    path: Option<EmulatedPath>,
    /// Requests on that path and at the device.
    outstanding: u32,
}

impl DeviceQueue {
    /// Time of the device's next event.
    pub(crate) fn next(&self) -> Nanos {
        self.next
    }

    /// A request is sent; how long it is on the way, in nanoseconds.
    pub(crate) fn send(&mut self) -> Nanos {
        self.outstanding += 1;
        let path = self.path.as_ref();
        let way_ns = path.map_or(0, |path| path.latency_ns + path.added_ns(self.outstanding));
        way_ns.saturating_sub(REQUEST_CPU_NS.get())
    }

    /// The answer to a request has arrived.
    pub(crate) fn receive(&mut self) {
        debug_assert!(self.outstanding > 0);
        self.outstanding -= 1;
    }

    /// What the server of an emulated disk compensates.
    fn compensated_ns(&self) -> Nanos {
        self.path.as_ref().map_or(0, |path| path.latency_ns)
    }

    /// Submits a request that has arrived; `log`: for a file of the log.
    pub(crate) fn submit(&mut self, now: Nanos, id: RequestId, request: Request, log: bool) {
        self.clock = self.clock.max(now);
        let gate = self.gate.as_ref();
        let gate = gate.filter(|_| matches!(request.op, Op::Read | Op::Write));
        let at = gate.map_or(0, |gate| {
            gate.0.borrow_mut().pass(self.clock, request.sectors)
        });
        if at > self.clock || !self.held.is_empty() {
            self.held.push_back(HeldRequest {
                at,
                id,
                request,
                log,
            });
        } else {
            self.submit_now(id, request, log);
        }
        self.look();
    }

    fn submit_now(&mut self, id: RequestId, request: Request, log: bool) {
        let number = u64::from(id.0);
        match &mut self.device {
            DeviceModel::Profile(device) => device.submit(self.clock, number, request),
            DeviceModel::Empirical(device) => device.submit(self.clock, number, request, log),
            DeviceModel::Shared(device) => device.submit(self.clock, number, request),
        }
    }

    /// Completes requests that are due.
    pub(crate) fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        let until = now + self.compensated_ns();
        while let Some(event) = self.next_event().filter(|event| *event <= until) {
            self.clock = self.clock.max(event);
            if self.device_event().is_none_or(|at| at > event) {
                if let Some(held) = self.held.pop_front() {
                    self.submit_now(held.id, held.request, held.log);
                }
                continue;
            }
            match &mut self.device {
                DeviceModel::Profile(device) => device.advance(self.clock, completions),
                DeviceModel::Empirical(device) => device.advance(self.clock, completions),
                DeviceModel::Shared(device) => device.advance(self.clock, completions),
            }
        }
        self.look();
    }

    /// Looks whether other databases have changed the device.
    pub(crate) fn look_if_shared(&mut self) {
        if matches!(self.device, DeviceModel::Shared(_)) {
            self.look();
        }
    }

    /// Updates the time of the device's next event.
    fn look(&mut self) {
        let event = self.next_event();
        self.next = event.map_or(Nanos::MAX, |at| at.saturating_sub(self.compensated_ns()));
    }

    /// Time of the next event of the device, or of a request that passes the gate.
    fn next_event(&self) -> Option<Nanos> {
        let passes = self.held.front().map(|held| held.at);
        self.device_event().into_iter().chain(passes).min()
    }

    fn device_event(&self) -> Option<Nanos> {
        match &self.device {
            DeviceModel::Profile(device) => device.next_event(),
            DeviceModel::Empirical(device) => device.next_event(),
            DeviceModel::Shared(device) => device.next_event(),
        }
    }
}

/// Each device of a scenario; shared ones are among `shared`, or added there.
pub(crate) fn scenario_devices(
    program: &Program,
    scenario: &Scenario,
    shared: &mut SharedDevices,
) -> Result<Vec<DeviceQueue>, UserError> {
    let gate = match &scenario.instance {
        Some(instance) => Some(instance.gate(scenario.worn)?),
        None => None,
    };
    let gate = gate.map(|gate| MachineGate(Rc::new(RefCell::new(gate))));
    let mut seeds = SplitMix::new(scenario.seed ^ 0x0de5_1ce5);
    let mut queue = |(index, profile): (usize, &Option<Profile>)| {
        let seed = seeds.draw();
        let recorded = program.work.devices.get(index);
        let observed = scenario.empirical_devices && recorded.is_some_and(is_device_modelled);
        let own_profile = program.profiles.get(index).and_then(Option::as_ref);
        let device = match (profile, own_profile.filter(|_| !observed)) {
            (Some(profile), _) => {
                let build = || new_device(profile, scenario.worn, seed);
                match scenario.shared.get(&index) {
                    Some(key) => DeviceModel::Shared(shared.join(*key, build)),
                    None => DeviceModel::Profile(build()),
                }
            }
            (None, Some(profile)) => DeviceModel::Profile(profile.build(seed)),
            (None, None) => {
                let unknown = RecordedDevice::default();
                let recorded = recorded.unwrap_or(&unknown);
                DeviceModel::Empirical(Box::new(EmpiricalDevice::new(recorded, seed)))
            }
        };
        DeviceQueue {
            device,
            gate: gate
                .clone()
                .filter(|_| is_behind_gate(program, scenario, index)),
            held: VecDeque::new(),
            clock: 0,
            next: Nanos::MAX,
            path: path_to_device(program, scenario, index),
            outstanding: 0,
        }
    };
    let devices = scenario.devices.iter().enumerate();
    Ok(devices.map(&mut queue).collect())
}

/// Whether the device with this index is a network volume: by its profile, or because the scenario says so.
fn is_behind_gate(program: &Program, scenario: &Scenario, index: usize) -> bool {
    let own_profile = program.profiles.get(index).and_then(Option::as_ref);
    let profile = scenario.devices[index].as_ref().or(own_profile);
    profile.is_some_and(Profile::is_network_volume)
        || scenario
            .instance
            .as_ref()
            .is_some_and(|instance| instance.recorded.contains(&index))
}

/// The path to the device with this index: roles that stay on their emulated disk keep its path, even if
/// others move to real devices. Observed times contain it.
fn path_to_device(program: &Program, scenario: &Scenario, index: usize) -> Option<EmulatedPath> {
    let emulated = match scenario.devices.get(index) {
        Some(Some(_)) => scenario.emulated,
        _ => matches!(program.profiles.get(index), Some(Some(_))),
    };
    let off = scenario.empirical_devices || program.is_off(Mechanism::EmulatedPath);
    if off || !emulated {
        return None;
    }
    let recorded = &program.work.devices;
    let own = recorded.get(index).and_then(|device| device.path.as_ref());
    // A path depends on the device at its end: processors sleep deeper while a slower one works.
    let profile = scenario.devices.get(index).and_then(Option::as_ref);
    let alike = || {
        let mut paths = program.paths.iter();
        let alike =
            paths.find(|known| profile.is_some_and(|other| known.0.params() == other.params()));
        alike.map(|known| &known.1)
    };
    let paths = recorded.iter().filter_map(|device| device.path.as_ref());
    let longest = || paths.max_by_key(|path| path.latency_ns);
    let path = own.or_else(alike).or_else(longest).cloned();
    Some(path.unwrap_or_else(|| EmulatedPath {
        latency_ns: PATH_NS.get(),
        added_ns: Vec::new(),
    }))
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
fn is_device_modelled(device: &RecordedDevice) -> bool {
    device.reads.len() + device.writes.len() >= MIN_OBSERVED_TIMES
}

/// The devices that several databases of a joint replay use, by their key: one model, one clock, one queue each.
#[derive(Default)]
pub(crate) struct SharedDevices {
    devices: BTreeMap<usize, Rc<RefCell<SharedDeviceQueues>>>,
}

impl SharedDevices {
    /// One database's access to the device with this key, which is built for the first one.
    fn join(&mut self, key: usize, build: impl FnOnce() -> Box<dyn Device>) -> SharedDevice {
        let shared = self.devices.entry(key).or_insert_with(|| {
            Rc::new(RefCell::new(SharedDeviceQueues {
                model: build(),
                clock: 0,
                delivered: Vec::new(),
                end: 0,
                completions: Vec::new(),
            }))
        });
        let mut device = shared.borrow_mut();
        device.delivered.push(Vec::new());
        SharedDevice {
            database: device.delivered.len() - 1,
            shared: Rc::clone(shared),
        }
    }

    /// First sector behind the databases that already lie on the device with this key.
    pub(crate) fn end(&self, key: Option<&usize>) -> u64 {
        let device = key.and_then(|key| self.devices.get(key));
        device.map_or(0, |device| device.borrow().end)
    }

    /// Sets that sector, once the next database has its place.
    pub(crate) fn set_end(&mut self, key: usize, end: u64) {
        if let Some(device) = self.devices.get(&key) {
            device.borrow_mut().end = end;
        }
    }
}

struct SharedDeviceQueues {
    model: Box<dyn Device>,
    /// Time of the model: with a path credit, ahead of a database's own by at most that credit.
    clock: Nanos,
    /// Completions that each database has yet to take.
    delivered: Vec<Vec<Completion>>,
    end: u64,
    completions: Vec<Completion>,
}

/// A shared device as one database sees it.
struct SharedDevice {
    database: usize,
    shared: Rc<RefCell<SharedDeviceQueues>>,
}

impl SharedDevice {
    fn submit(&self, now: Nanos, number: u64, request: Request) {
        let mut shared = self.shared.borrow_mut();
        shared.clock = shared.clock.max(now);
        let (at, name) = (shared.clock, (self.database as u64) << ID_BITS);
        shared.model.submit(at, name | number, request);
    }

    /// Time of the next event of the device, or of a completion that this database has not taken.
    fn next_event(&self) -> Option<Nanos> {
        let shared = self.shared.borrow();
        let delivered = shared.delivered[self.database].first();
        let delivered = delivered.map(|completion| completion.at);
        delivered.or_else(|| shared.model.next_event())
    }

    /// Advances the device for all its databases; takes this database's completions.
    fn advance(&self, now: Nanos, completions: &mut Vec<Completion>) {
        let mut shared = self.shared.borrow_mut();
        let shared = &mut *shared;
        if shared.model.next_event().is_some_and(|at| at <= now) {
            shared.clock = shared.clock.max(now);
            shared.model.advance(shared.clock, &mut shared.completions);
            for completion in shared.completions.drain(..) {
                shared.delivered[(completion.id >> ID_BITS) as usize].push(completion);
            }
        }
        completions.append(&mut shared.delivered[self.database]);
    }
}
