// The figures of one placement, as tiles. Text is set as text: names come from strangers' files.
tierwise.element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'text') made.textContent = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
};

tierwise.figures = (() => {
  const {recording, devices, settings, choices, states, reasons} = tierwise.data;
  const places = tierwise.placements;
  const {NONE, significant, ratio, microseconds, seconds, money, months} = tierwise.numbers;
  const root = document.getElementById('tiles');
  const note = document.getElementById('note');
  const unit = recording.unit[0].toUpperCase() + recording.unit.slice(1);

  const kinds = [
    recording.once
      ? {id: 'elapsed', title: 'Time for the work', key: 'elapsed_s', shown: seconds}
      : {id: 'rate', title: unit + ' a second', key: 'rate', shown: significant},
    {id: 'speedup', title: 'Times as fast as recorded', key: 'speedup', shown: ratio},
    {id: 'p50', title: 'Latency, median', key: 'p50_us', shown: microseconds},
    {id: 'p99', title: '99th percentile', key: 'p99_us', shown: microseconds},
    {id: 'cost', title: 'Cost a month', key: 'cost', shown: money},
    {id: 'wear', title: 'Worn out after', key: 'wear_months', shown: months},
    {id: 'power', title: 'A power cut'},
  ];
  const tiles = {};
  for (const {id, title} of kinds) {
    const value = tierwise.element('p', {class: 'value'});
    const small = tierwise.element('p', {class: 'small'});
    tiles[id] = {value, small};
    root.append(tierwise.element('div', {class: 'tile', id: 'tile-' + id},
      tierwise.element('p', {class: 'title', text: title}), value, small));
  }

  function likely(found, key, shown) {
    const [low, high] = [found[key + '_low'], found[key + '_high']];
    if (low === undefined || low === null || high === null || shown(low) === shown(high)) return '';
    return `likely ${shown(low)} to ${shown(high)}`;
  }

  function worn(found) {
    if (!(found.wear_months > 0)) return 'no figure for new devices';
    const sooner = months(found.wear_months_predicted);
    const filled = sooner === months(found.wear_months) ? '' : `; ${sooner} at the predicted rate`;
    return `at the recorded rate${filled}`;
  }

  const changed = () => tierwise.state.settings.map(index => settings[index]);

  function power(number, tables) {
    const digits = tables ? [devices.findIndex(one => one.name === tables.device)] : places.digits(number);
    const state = tables ? devices[digits[0]].state : places.state(number);
    const lost = changed().filter(one => one.harms).map(one => `${one.name} may lose commits`).join('; ');
    if (state === null) return ['as today', lost];
    const worst = devices.find((one, index) => digits.includes(index) && index > 0 && one.state === state);
    return [states[state], [worst ? `${worst.name}, by profile; ${worst.tested}` : '', lost].filter(Boolean).join('; ')];
  }

  // Show figures; `found` has the keys of the data's columns. `extra` is what a server says of its own figures.
  function show(number, found, extra) {
    for (const {id, key, shown} of kinds) {
      if (!key) continue;
      tiles[id].value.textContent = shown(found[key]);
      tiles[id].small.textContent = likely(found, key, shown);
    }
    const choice = tierwise.state.choice(number);
    const tables = choices[choice]?.rows ? choices[choice] : null;
    tiles.wear.value.textContent = months(found.wear_months);
    tiles.wear.small.textContent = worn(found);
    tiles.cost.small.textContent = 'compared with now';
    const [words, which] = power(number, tables);
    tiles.power.value.textContent = words;
    tiles.power.small.textContent = which;
    const said = [];
    for (const one of changed()) said.push(`${one.name}: ${one.loses}.`);
    if (choice === null && extra === undefined) said.push(missing());
    if (tables) said.push(`${tables.title} on ${tables.device}, all else where it was recorded.`);
    if (!places.answered(number)) said.push('No answer: a device is too small for the files placed on it.');
    if (found.bound) {
      said.push(`From the measured waits alone, at most ${ratio(found.bound)} times as fast: ${reasons[found.reason]}.`);
    }
    if (choice === undefined && !tierwise.state.passes(number) && places.answered(number)) said.push('This placement does not pass the filters.');
    if (extra) said.push(extra);
    note.textContent = said.join(' ');
  }

  function missing() {
    const names = changed().map(one => one.name).join(' and ');
    return `${names} with this placement: not simulated. Each setting was simulated alone, with the recorded and the advised placement.`;
  }

  // One sentence for the live region, and for a dot of the chart with its own figures.
  function sentence(number, found = tierwise.state.figures(number)) {
    if (tierwise.state.choice(number) === null && found.rate === null) return 'not simulated';
    if (!places.answered(number)) return 'no answer: a device is too small';
    const rate = recording.once ? seconds(found.elapsed_s) : `${significant(found.rate)} ${recording.unit} a second`;
    return `${rate}, ${ratio(found.speedup)} times as fast, ${money(found.cost)} a month`;
  }

  return {show, sentence};
})();
