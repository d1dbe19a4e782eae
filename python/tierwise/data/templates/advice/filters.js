// Filters for the chart and the exported table.
tierwise.filters = (() => {
  const {element, state} = tierwise;
  const form = document.getElementById('filters');
  const count = element('p', {class: 'count', role: 'status'});
  const inputs = {};

  function number(name, label, unit) {
    const input = element('input', {type: 'number', min: 0, step: 'any', id: 'filter-' + name, inputmode: 'decimal'});
    add(name, label, input, unit);
  }

  function select(name, label, options) {
    const input = element('select', {id: 'filter-' + name});
    for (const [value, text] of options) input.append(element('option', {value, text}));
    add(name, label, input, '');
  }

  function add(name, label, input, unit) {
    inputs[name] = input;
    input.addEventListener('input', () => state.filter(name, input.value));
    form.append(element('p', {class: 'filter'},
      element('label', {for: 'filter-' + name, text: label}),
      element('span', {}, input, element('span', {class: 'unit', text: unit}))));
  }

  form.append(element('h3', {text: 'Only placements with'}));
  if (!tierwise.data.recording.once) number('p99', '99th percentile at most', 'ms');
  number('cost', 'cost a month at most', tierwise.data.currency);
  select('lasts', 'new devices that last', [
    ['', 'any time'], ['1', '1 year or more'], ['3', '3 years or more'], ['5', '5 years or more'], ['10', '10 years or more'],
  ]);
  select('power', 'after a power cut', [
    ['', 'any outcome'], ['flush', 'flushed writes kept'], ['kept', 'completed writes kept'],
  ]);
  form.append(count);
  form.addEventListener('submit', event => event.preventDefault());

  function passing() {
    const found = [];
    for (let number = 0; number < tierwise.placements.count; number++) if (state.passes(number)) found.push(number);
    return found;
  }

  function draw(found) {
    for (const [name, input] of Object.entries(inputs)) {
      if (document.activeElement !== input) input.value = state.filters[name] ?? '';
    }
    const all = tierwise.data.figures.rate.filter(rate => rate !== null).length;
    count.textContent = `${tierwise.numbers.count(found.length)} of ${tierwise.numbers.count(all)} placements pass`;
  }

  return {passing, draw};
})();
