// Rate against cost, drawn by Vega, which is unpacked from the page itself.
tierwise.chart = (() => {
  const {data, placements: places, numbers} = tierwise;
  const root = document.getElementById('chart');
  const tip = document.getElementById('tip');
  const legend = document.getElementById('legend');
  const AS_GOOD = 1.03; // as advise: a step up by less is none
  const once = data.recording.once;
  let view = null;
  let points = [];

  async function unpack() {
    const packed = atob(document.getElementById('vega').textContent);
    const bytes = Uint8Array.from(packed, letter => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    const script = document.createElement('script');
    script.textContent = await new Response(stream).text();
    document.head.append(script); // its hash is in the page's policy
  }

  function record(number) {
    const found = places.at(number);
    const value = once ? 'speedup' : 'rate';
    return {n: number, cost: found.cost, y: found[value], low: found[value + '_low'], high: found[value + '_high']};
  }

  // Placements that nothing cheaper or equally dear equals, cheapest first.
  function front(found) {
    const sorted = [...found].sort((a, b) => a.cost - b.cost || b.y - a.y);
    const best = [];
    for (const one of sorted) {
      if (!best.length || one.y >= AS_GOOD * best[best.length - 1].y) best.push(one);
    }
    return best;
  }

  function datasets(chosen) {
    const known = number => places.answered(number) ? [record(number)] : [];
    return {points, front: front(points), chosen: known(chosen), advised: known(data.advised)};
  }

  // Axes in plain figures; sizes in the page's type.
  function spec(colours, width) {
    const text = JSON.stringify(data.chart).replace(/var\(--([\w-]+)\)/g, (all, name) => colours?.[name] ?? all);
    const made = JSON.parse(text);
    const rem = colours ? 16 : parseFloat(getComputedStyle(document.documentElement).fontSize);
    made.width = width;
    made.height = Math.round(21 * rem);
    for (const part of ['axis', 'legend']) {
      Object.assign(made.config[part], {labelFontSize: 0.8 * rem, titleFontSize: 0.8 * rem});
    }
    return made;
  }

  async function embed(element, colours, width) {
    const {view: made} = await vegaEmbed(element, spec(colours, width), {
      ast: true, actions: false, renderer: 'svg', defaultStyle: false, tooltip: point,
    });
    return made;
  }

  function point(handler, event, item, value) {
    const number = item?.datum?.n;
    tip.hidden = number === undefined || !value;
    if (tip.hidden) return;
    const digits = places.digits(number);
    const moved = digits.map((device, role) => device ? `${data.roles[role].name} on ${data.devices[device].name}` : '').filter(Boolean);
    tip.replaceChildren(
      ...(moved.length ? moved : ['as recorded']).map(text => tierwise.element('p', {text})),
      tierwise.element('p', {class: 'small', text: tierwise.figures.sentence(number)}));
    const [x, y] = [event.clientX, event.clientY];
    tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 12 : y + 18}px`;
  }

  async function update(chosen, into = view) {
    if (!into) return;
    for (const [name, values] of Object.entries(datasets(chosen))) into.data(name, values);
    await into.resize().runAsync();
  }

  async function start() {
    await unpack();
    view = await embed(root, null, root.clientWidth);
    view.addEventListener('click', (event, item) => {
      if (item?.datum?.n !== undefined) tierwise.state.choose(item.datum.n);
    });
    await update(tierwise.state.number);
    new ResizeObserver(() => {
      if (root.clientWidth && Math.abs(view.width() - root.clientWidth) > 1) view.width(root.clientWidth).runAsync();
    }).observe(root.parentElement);
    root.dataset.drawn = '';
  }

  function draw(found) {
    points = found.map(record);
    legend.textContent = 'Each dot is a placement. Line: nothing cheaper is as fast (within 3 %). '
      + 'Ring: shown above, with its interval. Diamond: advised.';
    return update(tierwise.state.number);
  }

  function choose(number) {
    if (!view) return;
    view.data('chosen', datasets(number).chosen).runAsync();
  }

  // A drawing for use outside the page, in light colours.
  async function drawing(width = 960) {
    const made = await embed(document.createElement('div'), data.colours.light, width);
    made.background(data.colours.light.ground);
    await update(tierwise.state.number, made);
    return made;
  }

  return {start, draw, choose, drawing};
})();
