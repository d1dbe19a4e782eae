// The state of the page: the placement, what is changed beside it, and the filters. It lives in the fragment of the URL.
// Beside a placement there are settings, or in place of it a set of tables with all else where it was recorded. An
// answer that was not simulated is never shown: `figures` are null then.
tierwise.state = (() => {
  const {devices, roles, advised, budget, settings, choices} = tierwise.data;
  const places = tierwise.placements;
  const FILTERS = ['p99', 'lasts', 'power', 'cost'];
  const listeners = [];
  const state = {number: advised, settings: [], tables: null, filters: {}};

  function read() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const found = places.digits(advised);
    roles.forEach((role, index) => {
      const device = devices.findIndex(one => one.name === asked.get(role.name));
      if (device >= 0) found[index] = device;
    });
    state.number = places.numberOf(found);
    const changed = asked.getAll('set');
    state.settings = settings.flatMap(({name}, index) => changed.includes(name) ? [index] : []);
    const tables = asked.has('tables') ? Number(asked.get('tables')) : null;
    state.tables = choices[tables]?.rows ? tables : null;
    if (state.tables !== null) Object.assign(state, {number: 0, settings: []});
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
    for (const index of state.settings) said.append('set', settings[index].name);
    if (state.tables !== null) said.set('tables', state.tables);
    for (const [name, value] of Object.entries(state.filters)) said.set(name, value);
    history.replaceState(null, '', '#' + said);
  }

  function tell(what) {
    for (const listener of listeners) listener(what);
  }

  function become(changes) {
    Object.assign(state, changes);
    write();
    tell('placement');
  }

  function choose(number) {
    if (number !== state.number || state.tables !== null) become({number, tables: null});
  }

  function toggle(setting) {
    const others = state.settings.filter(one => one !== setting);
    const next = others.length < state.settings.length ? others : [...others, setting].sort((a, b) => a - b);
    become({settings: next, tables: null});
  }

  // A set of tables, by the index of its choice; null for none.
  function take(tables) {
    if (tables !== state.tables && (tables === null || choices[tables]?.rows)) become({tables, settings: [], number: 0});
  }

  // Index of what was simulated of a placement with the changed settings, or of the tables; undefined where only the
  // placement is changed, null where it was not simulated.
  function choice(number) {
    if (state.tables !== null) return number === state.number ? state.tables : undefined;
    if (!state.settings.length) return undefined;
    const found = choices.findIndex(one => one.number === number && String(one.settings) === String(state.settings));
    return found < 0 ? null : found;
  }

  function figures(number) {
    const [own, found] = [places.at(number), choice(number)];
    if (found === undefined) return own;
    const columns = Object.entries(tierwise.data.choice_figures);
    return {...own, ...Object.fromEntries(columns.map(([name, column]) => [name, found === null ? null : column[found]]))};
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
    get settings() { return state.settings; },
    get tables() { return state.tables; },
    choose, toggle, take, choice, figures, filter, passes,
    listen: listener => listeners.push(listener),
  };
})();
