// What can be changed beside the placement: settings as checkboxes, and simulated sets of tables as radio buttons in the
// table of the page. A set that was not simulated has no button.
tierwise.choices = (() => {
  const {data, element, state} = tierwise;
  const root = document.getElementById('switches');
  const rows = document.querySelectorAll('#table-rows tbody tr');
  const said = document.getElementById('said');

  function heard(what) {
    said.textContent = `${what}: ${tierwise.figures.sentence(state.number)}`;
  }

  const switches = data.settings.map(({name, loses}, index) => {
    const input = element('input', {type: 'checkbox', id: `set-${index}`});
    input.addEventListener('change', () => {
      state.toggle(index);
      heard(`${name} ${input.checked ? 'on' : 'off'}`);
    });
    const label = element('label', {class: 'pick', for: input.id}, input, element('code', {text: name}));
    root?.append(element('p', {class: 'switch'}, label, element('span', {class: 'small', text: loses})));
    return input;
  });

  // A radio button in the first cell of a row, whose text becomes its label.
  function pick(cell, choice, what) {
    const input = element('input', {type: 'radio', name: 'tables'});
    const label = element('label', {class: 'pick'}, input, element('span', {}, ...cell.childNodes));
    cell.append(label);
    input.addEventListener('change', () => {
      state.take(choice);
      heard(what);
    });
    return {input, choice};
  }

  root?.removeAttribute('hidden');
  const none = document.getElementById('table-none');
  const sets = document.querySelectorAll('#table-sets tbody tr');
  const picks = none ? [pick(none, null, 'no tables moved')] : [];
  data.choices.forEach(({row, title, device}, choice) => {
    if (row !== undefined) picks.push(pick(sets[row].querySelector('th'), choice, `${title} on ${device}`));
  });

  // One device at a time, the best first; the set that was chosen follows to the other device.
  const devices = [...new Set(data.choices.filter(one => one.rows).map(one => one.device))];
  const device = element('select', {id: 'table-device'}, ...devices.map(name => element('option', {value: name, text: name})));
  device.addEventListener('change', () => {
    const now = data.choices[state.tables];
    const same = data.choices.findIndex(one => one.device === device.value && String(one.rows) === String(now?.rows));
    if (now) state.take(same < 0 ? null : same);
    draw();
    heard(`tables on ${device.value}`);
  });
  if (devices.length > 1) {
    none.before(element('p', {class: 'filter'}, element('label', {for: device.id, text: 'Device for tables'}), device));
  }

  function draw() {
    if (state.tables !== null) device.value = data.choices[state.tables].device;
    switches.forEach((input, index) => { input.checked = state.settings.includes(index); });
    for (const {input, choice} of picks) {
      input.checked = state.tables === choice;
      input.closest('tr')?.classList.toggle('chosen', input.checked);
    }
    for (const row of sets) row.hidden = devices.length > 0 && row.cells[1].textContent !== device.value;
    const moved = data.choices[state.tables]?.rows ?? [];
    rows.forEach((row, index) => row.classList.toggle('chosen', moved.includes(index)));
  }

  return {draw};
})();
