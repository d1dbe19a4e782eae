// The state of the page: the placement shown and the filters. It lives in the fragment of the URL.
tierwise.state = (() => {
  const {devices, roles, advised, budget} = tierwise.data;
  const places = tierwise.placements;
  const FILTERS = ['p99', 'lasts', 'power', 'cost'];
  const listeners = [];
  const state = {number: advised, filters: {}};

  function read() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const found = places.digits(advised);
    roles.forEach((role, index) => {
      const device = devices.findIndex(one => one.name === asked.get(role.name));
      if (device >= 0) found[index] = device;
    });
    state.number = places.numberOf(found);
    state.filters = {};
    for (const name of FILTERS) {
      const value = asked.get(name);
      if (name === 'power' ? ['flush', 'kept'].includes(value) : Number(value) > 0) state.filters[name] = value;
    }
    if (!asked.has('cost') && budget !== null && !location.hash) state.filters.cost = String(budget);
  }

  function write() {
    const said = new URLSearchParams();
    places.digits(state.number).forEach((device, role) => said.set(roles[role].name, devices[device].name));
    for (const [name, value] of Object.entries(state.filters)) said.set(name, value);
    history.replaceState(null, '', '#' + said);
  }

  function tell(what) {
    for (const listener of listeners) listener(what);
  }

  function choose(number) {
    if (number === state.number) return;
    state.number = number;
    write();
    tell('placement');
  }

  function filter(name, value) {
    if (value) state.filters[name] = value;
    else delete state.filters[name];
    write();
    tell('filters');
  }

  // Whether a placement passes the filters.
  function passes(number) {
    const one = tierwise.data.figures;
    const {p99, lasts, power, cost} = state.filters;
    if (!places.answered(number)) return false;
    if (p99 && !(one.p99_us[number] <= Number(p99) * 1e3)) return false;
    if (cost && one.cost[number] > Number(cost)) return false;
    if (lasts && one.wear_months[number] !== null && one.wear_months[number] < Number(lasts) * 12) return false;
    if (power) {
      const left = places.state(number);
      if (left !== null && places.order.indexOf(left) < places.order.indexOf(power)) return false;
    }
    return true;
  }

  addEventListener('hashchange', () => {
    read();
    tell('placement');
    tell('filters');
  });
  read();
  return {
    get number() { return state.number; },
    get filters() { return state.filters; },
    choose, filter, passes,
    listen: listener => listeners.push(listener),
  };
})();
