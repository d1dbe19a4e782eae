// Sliders that the server's simulator answers while one drags. `tierwise.data.live` is
//   {ask, most_seeds, sliders: [{name, label, stops, as_recorded, recorded}]}   (serve/page_questions.py)
// `ask` takes {client, scenario} and streams a line of JSON for each answer, the final one last.
tierwise.live = (() => {
  const {data, element, explorer, numbers} = tierwise;
  const {sliders, most_seeds: mostSeeds} = data.live;
  const PATIENCE_MS = 500; // a newer question waits so long for the first answer to the one before
  const PACE_MS = 50; // least time between two questions
  const root = document.getElementById('live');
  const status = element('p', {class: 'note', id: 'live-status', role: 'status'});
  const client = Array.from(crypto.getRandomValues(new Uint8Array(16)), one => one.toString(16).padStart(2, '0')).join('');
  const options = {clients: 'clients', cores: 'cores', memory_bytes: 'memory', growth: 'growth', rate_per_s: 'rate'};
  const chosen = {};
  const inputs = {};
  let running = null; // {abort, sentAt, answered}
  let timer = 0;

  function shown({name, recorded}, value) {
    if (value === null && recorded === undefined) return 'as recorded: clients wait for their answers';
    const number = value ?? recorded;
    const text = name === 'memory_bytes' ? numbers.size(number)
      : name === 'growth' ? numbers.ratio(number) + ' times'
      : name === 'rate_per_s' ? numbers.significant(number) + ' a second' : numbers.significant(number, String(number).length);
    return value === null ? `${text}, as recorded` : text;
  }

  function add(slider) {
    const id = 'live-' + slider.name;
    const output = element('output', {for: id});
    const input = element('input', {type: 'range', id, min: 0, max: slider.stops.length - 1, step: 1});
    inputs[slider.name] = {slider, input, output};
    input.addEventListener('input', () => {
      set(slider.name, Number(input.value));
      write();
      changed();
    });
    root.append(element('p', {class: 'slider'}, element('label', {for: id, text: slider.label}), input, output));
    set(slider.name, slider.as_recorded);
  }

  function set(name, stop) {
    const {slider, input, output} = inputs[name];
    chosen[name] = slider.stops[stop];
    input.value = stop;
    output.textContent = shown(slider, chosen[name]);
    input.setAttribute('aria-valuetext', output.textContent);
  }

  // The sliders are in the query of the URL, the placement in its fragment.
  function read() {
    const asked = new URLSearchParams(location.search);
    for (const {name, stops, as_recorded: recorded} of sliders) {
      const stop = asked.has(name) ? stops.indexOf(Number(asked.get(name))) : recorded;
      set(name, stop < 0 ? recorded : stop);
    }
  }

  function write() {
    const said = new URLSearchParams(moved());
    history.replaceState(null, '', (said.size ? '?' + said : location.pathname) + location.hash);
    tierwise.exports.draw();
  }

  const moved = () => Object.entries(chosen).filter(([, value]) => value !== null);
  const scenario = () => ({
    placement: explorer.placement(), settings: explorer.settings(), ...Object.fromEntries(moved()),
  });
  const command = () => moved().map(([name, value]) => ` --${options[name]} ${value}`).join('');

  // While a question has no answer yet, a newer one waits for it, so that figures follow a drag on a busy server.
  function changed() {
    clearTimeout(timer);
    const since = running ? performance.now() - running.sentAt : Infinity;
    const wait = running && !running.answered ? PATIENCE_MS - since : PACE_MS - since;
    if (wait > 0) timer = setTimeout(changed, wait);
    else ask();
    root.dataset.waits = String(wait > 0);
  }

  async function ask() {
    running?.abort.abort();
    const own = running = {abort: new AbortController(), sentAt: performance.now(), answered: false};
    status.textContent = 'Simulating …';
    try {
      const response = await fetch(data.live.ask, {
        method: 'POST',
        headers: {'Content-Type': 'application/json'},
        body: JSON.stringify({client, scenario: scenario()}),
        signal: own.abort.signal,
      });
      if (!response.ok) throw await response.json();
      for await (const answer of lines(response.body)) {
        if (own !== running) return;
        if (answer.error) throw answer.error;
        if (!answer.superseded) show(answer);
        if (!own.answered) {
          own.answered = true;
          if (root.dataset.waits === 'true') changed();
        }
      }
    } catch (error) {
      if (own !== running || error.name === 'AbortError') return;
      own.answered = true;
      status.textContent = error.fix ? `${error.message}: ${error.fix}.` : 'The server does not answer. Is tierwise serve running?';
    }
  }

  async function* lines(stream) {
    const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const {done, value} = await reader.read();
      const parts = (rest + (value ?? '')).split('\n');
      rest = parts.pop();
      for (const part of parts) yield JSON.parse(part);
      if (done) return;
    }
  }

  function show(answer) {
    const figures = {};
    for (const [from, key] of [['rate_per_s', 'rate'], ['speedup'], ['elapsed_s'], ['p50_us'], ['p99_us']]) {
      const found = answer[from];
      figures[key ?? from] = found?.value ?? null;
      figures[(key ?? from) + '_low'] = found?.low ?? null;
      figures[(key ?? from) + '_high'] = found?.high ?? null;
    }
    if (moved().length) Object.assign(figures, {bound: null, wear_months: null});
    if (chosen.growth) figures.cost = null;
    explorer.show({...figures, note: note(answer)});
    status.textContent = progress(answer);
  }

  function note(answer) {
    const said = [];
    if (answer.refused) said.push(`${answer.refused.message}: ${answer.refused.fix}.`);
    if (answer.saturated) said.push('More transactions arrive than complete: their waits keep growing.');
    if (answer.bounds_only) said.push('Only the interval tells anything: it is too wide for an estimate.');
    if (moved().length) said.push('Wear is of the recorded load' + (chosen.growth ? ', cost of the recorded size: not shown.' : ': not shown.'));
    return said.join(' ');
  }

  function progress({stage, refused, seeds, rate_half_width: width, agreed}) {
    if (refused) return 'No answer.';
    if (stage === 'first') return 'First look: one short run of the simulator. Refining …';
    const spread = width === null ? '' : ` They give the mean rate within ±${numbers.percent(Math.max(width, 0.001))}.`;
    if (stage === 'refining') return `${seeds} of up to ${mostSeeds} runs.${spread} Refining …`;
    return (agreed ? `${seeds} runs of the simulator agree.` : `${seeds} runs of the simulator still differ.`) + spread;
  }

  root.append(element('h3', {text: 'On another machine'}));
  sliders.forEach(add);
  const reset = element('button', {type: 'button', id: 'live-reset', text: 'Sliders as recorded'});
  reset.addEventListener('click', () => {
    for (const {name, as_recorded: stop} of sliders) set(name, stop);
    write();
    changed();
  });
  root.append(element('p', {class: 'buttons'}, reset), status);
  root.hidden = false;
  read();
  explorer.onchange(changed);
  return {command, start: () => moved().length + explorer.settings().length && (tierwise.exports.draw(), changed())};
})();
tierwise.live.start();
