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
  const {recording, devices, states, reasons} = tierwise.data;
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
    if (found.wear_months === null) return 'no figure for new devices';
    const sooner = months(found.wear_months_predicted);
    const filled = sooner === months(found.wear_months) ? '' : `; ${sooner} at the predicted rate`;
    return `at the recorded rate${filled}`;
  }

  function power(number) {
    const state = places.state(number);
    if (state === null) return ['as today', ''];
    const digits = places.digits(number);
    const worst = devices.find((one, index) => digits.includes(index) && index > 0 && one.state === state);
    return [states[state], worst ? `${worst.name}, by profile; ${worst.tested}` : ''];
  }

  // Show figures; `found` has the keys of the data's columns.
  function show(number, found, extra = '') {
    for (const {id, key, shown} of kinds) {
      if (!key) continue;
      tiles[id].value.textContent = shown(found[key]);
      tiles[id].small.textContent = likely(found, key, shown);
    }
    tiles.wear.value.textContent = found.wear_months === null ? NONE : months(found.wear_months);
    tiles.wear.small.textContent = worn(found);
    tiles.cost.small.textContent = 'compared with now';
    const [words, which] = power(number);
    tiles.power.value.textContent = words;
    tiles.power.small.textContent = which;
    const said = [];
    if (!places.answered(number)) said.push('No answer: a device is too small for the files placed on it.');
    if (found.bound) {
      said.push(`From the measured waits alone, at most ${ratio(found.bound)} times as fast: ${reasons[found.reason]}.`);
    }
    if (!tierwise.state.passes(number) && places.answered(number)) said.push('This placement does not pass the filters.');
    if (extra) said.push(extra);
    note.textContent = said.join(' ');
  }

  // One sentence for the live region.
  function sentence(number) {
    const found = places.at(number);
    if (!places.answered(number)) return 'no answer: a device is too small';
    const rate = recording.once ? seconds(found.elapsed_s) : `${significant(found.rate)} ${recording.unit} a second`;
    return `${rate}, ${ratio(found.speedup)} times as fast, ${money(found.cost)} a month`;
  }

  return {show, sentence};
})();
