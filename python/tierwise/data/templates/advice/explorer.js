// The explorer: one placement at a time, its figures, and what listens to it.
//
// Interface for live.js, which is inlined after this file when the page's data has a `live` object:
//
//   tierwise.data                    the page's data (report/advice/page_data.py); `tierwise.data.live` is the server's
//   tierwise.explorer.placement()    {role: device} of every placed role; "recorded" is where it was recorded
//   tierwise.explorer.settings()     the changed settings, as a scenario names them
//   tierwise.explorer.onchange(fn)   fn(placement) after each change by drag, key, switch, chart or link; not at once
//   tierwise.explorer.show(figures)  overwrites the figures of the current placement until it changes again:
//                                    {rate, rate_low, rate_high, speedup, speedup_low, speedup_high,
//                                     p50_us, p50_us_low, p50_us_high, p99_us, p99_us_low, p99_us_high,
//                                     elapsed_s, note}; absent keys keep their figure, null shows a dash.
//   <section id="live" hidden>       empty, between board and chart: live.js fills it and takes `hidden` away
//
// With `live` the page's policy allows requests to the server it came from (connect-src 'self'), and no other.
tierwise.explorer = (() => {
  const {state, placements: places} = tierwise;
  const listeners = [];
  let shown = null; // figures from a server, for the current placement
  let previewed = null; // number of the placement under a card that is still held

  function figures() {
    const number = previewed ?? state.number;
    const {note, ...found} = (previewed === null && shown) || {};
    tierwise.figures.show(number, {...state.figures(number), ...found}, note);
  }

  function preview(number) {
    const next = number === state.number ? null : number;
    if (next === previewed) return;
    previewed = next;
    figures();
    tierwise.chart.choose(next ?? state.number);
  }

  function showPlacement() {
    shown = previewed = null;
    tierwise.board.draw();
    tierwise.choices.draw();
    tierwise.exports.draw();
    figures();
    tierwise.chart.choose(state.number);
    for (const listener of listeners) listener(places.asObject(state.number));
  }

  function showFilters() {
    const passing = tierwise.filters.passing();
    tierwise.filters.draw(passing);
    tierwise.chart.draw(passing);
    figures();
  }

  function show(found) {
    shown = found;
    figures();
  }

  state.listen(what => (what === 'placement' ? showPlacement : showFilters)());
  showPlacement();
  showFilters();
  tierwise.chart.start();
  return {
    placement: () => places.asObject(state.number),
    settings: () => state.settings.map(index => tierwise.data.settings[index].name),
    onchange: listener => listeners.push(listener),
    preview,
    show,
  };
})();
