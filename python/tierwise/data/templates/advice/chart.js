// Rate against cost, drawn by Vega, which is unpacked from the page itself.
tierwise.chart = (() => {
  const {data, placements: places, numbers} = tierwise;
  const root = document.getElementById('chart');
  const tip = document.getElementById('tip');
  const legend = document.getElementById('legend');
  const AS_GOOD = data.margin; // a step up by less is no reason to pay more
  const once = data.recording.once;
  let view = null;
  let fitted = () => true; // whether a point is within the scales
  let points = [];

  async function unpack() {
    const packed = atob(document.getElementById('vega').textContent);
    const bytes = Uint8Array.from(packed, letter => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    const script = document.createElement('script');
    script.textContent = await new Response(stream).text();
    document.head.append(script); // its hash is in the page's policy
  }

  function record(number, found = places.at(number)) {
    const value = once ? 'speedup' : 'rate';
    const {cost, told} = found;
    return {n: number, cost, told, y: found[value], low: found[value + '_low'], high: found[value + '_high']};
  }

  // Placements that nothing cheaper or equally dear equals, cheapest first. Whether one can be told from staying, the
  // advice says; so it does of the ratio up to which two count as equal.
  function front(found) {
    const sorted = [...found].sort((a, b) => a.cost - b.cost || b.y - a.y);
    const best = [];
    for (const one of sorted) {
      if (!best.length || (one.told && one.y >= AS_GOOD * best[best.length - 1].y)) best.push(one);
    }
    return best;
  }

  function datasets(chosen) {
    const known = one => one.y === null ? [] : [one];
    const shown = record(chosen, tierwise.state.figures(chosen));
    return {points, front: front(points), chosen: known(shown), advised: known(record(data.advised))};
  }

  // 0 on the scale of costs, then 1, 2 and 5 of each decade, or 1 alone where there are many.
  function ticks(low, high) {
    if (high <= low) return [];
    const decades = Math.log10(high / low);
    const steps = decades < 2.5 ? [1, 2, 5] : [1];
    const found = [];
    for (let ten = Math.floor(Math.log10(low)); ten <= Math.log10(high); ten++) {
      for (const step of steps) found.push(step * 10 ** ten);
    }
    return found.filter(tick => tick >= low && tick <= high);
  }

  // Both scales hold every drawn point and its interval.
  function fit(made, values) {
    const all = [...values.points, ...values.chosen, ...values.advised];
    const top = 1.3 * Math.max(1, ...all.map(one => one.cost));
    const saved = 1.3 * Math.max(0, ...all.map(one => -one.cost));
    const bottom = -Math.max(saved, 0.08 * Math.log1p(top));
    const low = 0.9 * Math.min(...all.map(one => one.low));
    const high = 1.1 * Math.max(...all.map(one => one.high));
    const {x, y} = made.encoding;
    x.scale.domain = [bottom, top];
    x.axis.values = [...ticks(1, saved).map(tick => -tick), 0, ...ticks(1, top)];
    y.scale.domain = [low, high];
    y.axis.values = ticks(low, high);
    fitted = one => one.cost >= bottom && one.cost <= top && one.low >= low && one.high <= high;
  }

  // Axes in plain figures; sizes in the page's type.
  function spec(values, colours, width) {
    const text = JSON.stringify(data.chart).replace(/var\(--([\w-]+)\)/g, (all, name) => colours?.[name] ?? all);
    const made = JSON.parse(text);
    const rem = colours ? 16 : parseFloat(getComputedStyle(document.documentElement).fontSize);
    made.datasets = values;
    if (values.points.length + values.chosen.length) fit(made, values);
    made.width = width;
    made.height = Math.round(21 * rem);
    Object.assign(made.config.axis, {labelFontSize: 0.8 * rem, titleFontSize: 0.8 * rem});
    for (const {mark} of made.layer) {
      if (mark.size) mark.size *= (rem / 16) ** 2;
      if (mark.strokeWidth) mark.strokeWidth *= rem / 16;
    }
    return made;
  }

  async function embed(element, colours, width) {
    const values = datasets(tierwise.state.number);
    const {view: made} = await vegaEmbed(element, spec(values, colours, width), {
      ast: true, actions: false, renderer: 'svg', defaultStyle: false, tooltip: point,
    });
    return made;
  }

  function point(handler, event, item, value) {
    const number = item?.datum?.n;
    tip.hidden = number === undefined || !value;
    if (tip.hidden) return;
    const digits = places.digits(number);
    const moved = digits.map((device, role) => device ? `${places.title(role)} on ${data.devices[device].name}` : '').filter(Boolean);
    tip.replaceChildren(
      ...(moved.length ? moved : ['as recorded']).map(text => tierwise.element('p', {text})),
      tierwise.element('p', {class: 'small', text: tierwise.figures.sentence(number, places.at(number))}));
    const [x, y] = [event.clientX, event.clientY];
    tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 12 : y + 18}px`;
  }

  // One drawing after the other, each of the state that it finds.
  let drawn = Promise.resolve();
  const redraw = () => drawn = drawn.then(paint);

  async function paint() {
    if (!window.vegaEmbed || !root.clientWidth) return;
    view?.finalize();
    view = null;
    view = await embed(root, null, root.clientWidth);
    view.addEventListener('click', (event, item) => {
      if (item?.datum?.n !== undefined) tierwise.state.choose(item.datum.n);
    });
    root.dataset.drawn = root.clientWidth;
    choose(tierwise.state.number);
  }

  async function start() {
    await unpack();
    await redraw();
    new ResizeObserver(() => {
      if (Math.abs(Number(root.dataset.drawn) - root.clientWidth) > 1) redraw();
    }).observe(root.parentElement);
  }

  function draw(found) {
    points = found.map(number => record(number));
    legend.textContent = 'Each dot is a placement. Line: can be told from staying, and nothing cheaper is as fast, within '
      + numbers.percent(AS_GOOD - 1) + '. '
      + 'Ring: shown above, with its interval. Diamond: advised.';
    return redraw();
  }

  function choose(number) {
    if (!view) return;
    const {chosen} = datasets(number);
    if (chosen.every(fitted)) view.data('chosen', chosen).runAsync();
    else redraw();
  }

  // A drawing for use outside the page, in light colours.
  async function drawing(width = 960) {
    const made = await embed(document.createElement('div'), data.colours.light, width);
    made.background(data.colours.light.ground);
    return made.runAsync();
  }

  return {start, draw, choose, drawing};
})();
