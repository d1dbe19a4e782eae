// Copy as command line; CSV, SVG and PNG.
tierwise.exports = (() => {
  const {data, element, placements: places, state} = tierwise;
  const root = document.getElementById('exports');
  const code = element('code', {id: 'command'});
  const told = element('span', {class: 'told', role: 'status'});
  const columns = Object.keys(data.figures).filter(name => !['reason', 'told'].includes(name));

  function command(number) {
    if (state.tables !== null) return data.choices[state.tables].command;
    const set = state.settings.map(index => ` --set ${data.settings[index].quoted}`).join('');
    const moved = places.digits(number).flatMap((device, card) => device
      ? data.roles[card].roles.map(role => `${role}=${data.devices[device].quoted}`) : []);
    return `${data.command} --place ${moved.join(',') || 'all=recorded'}${set}${tierwise.live?.command() ?? ''}`;
  }

  // A text that begins like a formula would be one in a spreadsheet.
  function cell(value) {
    const text = value === null ? '' : String(value);
    const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }

  function csv(numbers) {
    const head = [...data.roles.flatMap(card => card.roles), ...columns, 'power_cut'];
    const rows = numbers.map(number => [
      ...Object.values(places.asObject(number)),
      ...columns.map(name => data.figures[name][number]),
      places.state(number) ?? 'as recorded',
    ]);
    return [head, ...rows].map(row => row.map(cell).join(',')).join('\r\n') + '\r\n';
  }

  function save(blob, ending) {
    const name = data.recording.name.replace(/[^\w.-]+/g, '_') || 'recording';
    const url = URL.createObjectURL(blob);
    element('a', {href: url, download: `placements-${name}.${ending}`}).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      told.textContent = 'Copied.';
    } catch {
      getSelection().selectAllChildren(code);
      told.textContent = 'Selected: copy it with the keyboard.';
    }
  }

  const savers = {
    csv: async () => save(new Blob([csv(tierwise.filters.passing())], {type: 'text/csv'}), 'csv'),
    svg: async () => {
      const view = await tierwise.chart.drawing();
      save(new Blob([await view.toSVG()], {type: 'image/svg+xml'}), 'svg');
      view.finalize();
    },
    png: async () => {
      const view = await tierwise.chart.drawing();
      const canvas = await view.toCanvas(2);
      canvas.toBlob(blob => save(blob, 'png'), 'image/png');
      view.finalize();
    },
  };

  function button(id, text, action) {
    const made = element('button', {type: 'button', id, text});
    made.addEventListener('click', action);
    return made;
  }

  root.append(
    element('p', {class: 'buttons'},
      button('reset', 'As advised', () => state.choose(data.advised)),
      button('as-recorded', 'As recorded', () => state.choose(0)),
      button('copy', 'Copy as command line', () => copy(code.textContent)),
      ...Object.entries(savers).map(([name, action]) => button('save-' + name, name.toUpperCase(), action)),
      told),
    element('pre', {tabindex: 0, 'aria-label': 'The placement as a command line'}, code));

  function draw() {
    told.textContent = '';
    code.textContent = command(state.number);
  }

  return {draw, csv};
})();
