// The board: devices are columns, roles are cards. Cards move by mouse, touch or arrow key.
tierwise.board = (() => {
  const {data, element} = tierwise;
  const {significant, size, percent, money} = tierwise.numbers;
  const root = document.getElementById('board');
  const said = document.getElementById('said');
  const THRESHOLD_PX = 5;

  const {placements} = tierwise;

  // What a device costs with what is on it, in its parts; what it would cost while nothing is.
  function price(device, index, number) {
    if (index === 0) return 'no further cost';
    const bill = placements.bill(number, index);
    if (bill) return `${money(bill.amount)} a month: ${parts(bill)}`;
    if (device.least === device.most) return `${money(device.least)} a month`;
    return `${money(device.least)} to ${money(device.most)} a month, by what is on it`;
  }

  function parts(bill) {
    if (!bill.parts.length) return 'it is yours';
    if (bill.parts.length === 1) return bill.parts[0][0];
    return bill.parts.map(([words, amount]) => `${words} ${money(amount)}`).join(' + ');
  }

  const columns = data.devices.map((device, index) => {
    const cards = element('ul', {class: 'cards-of', 'aria-label': `roles on ${device.name}`});
    const name = index === 0 ? 'where they are' : device.name;
    const cost = element('p', {class: 'price'});
    const column = element('div', {class: 'column', 'data-device': index},
      element('h3', {text: name, title: device.name}),
      cost,
      element('p', {class: 'about', text: device.summary}),
      cards);
    if (device.alone) column.append(element('p', {class: 'alone', text: 'one drive: a single point of failure'}));
    root.append(column);
    return {column, cards, cost};
  });

  function load(role) {
    const meter = element('span', {class: 'meter', 'aria-hidden': 'true'});
    const bar = element('span', {});
    bar.style.width = `${Math.min(100, 100 * role.share)}%`;
    bar.style.background = `var(--${role.colour})`;
    meter.append(bar);
    const requests = role.requests_per_s ? `${significant(role.requests_per_s)} requests/s` : 'no requests';
    return [
      element('b', {text: role.roles.join(' + ')}),
      ...(role.because ? [element('span', {class: 'load', text: `move as one: ${role.because}`})] : []),
      element('span', {class: 'load', text: `${size(role.size_bytes)} · ${requests}`}),
      element('span', {class: 'load', text: `${percent(role.share)} of the time`}),
      meter,
    ];
  }

  const cards = data.roles.map((role, index) => {
    const card = element('button', {
      type: 'button', class: 'card', 'data-role': role.name,
      'aria-roledescription': 'movable card', 'aria-describedby': 'hint',
    }, ...load(role), element('span', {class: 'grip', 'aria-hidden': 'true', text: '⠿'}));
    card.addEventListener('keydown', event => byKey(event, index));
    card.addEventListener('pointerdown', event => begin(event, index, card));
    return {card, item: element('li', {}, card)};
  });
  for (const role of data.left) {
    columns[0].cards.append(element('li', {},
      element('div', {class: 'card stays'}, ...load(role), element('span', {class: 'load', text: 'stays'}))));
  }

  function move(role, device) {
    const number = tierwise.placements.moved(tierwise.state.number, role, device);
    if (number === tierwise.state.number) return;
    tierwise.state.choose(number);
    const where = device === 0 ? 'where it was' : data.devices[device].name;
    said.textContent = `${placements.title(role)} to ${where}: ${tierwise.figures.sentence(number)}`;
  }

  function byKey(event, role) {
    const last = data.devices.length - 1;
    const now = tierwise.placements.digits(tierwise.state.number)[role];
    const next = {
      ArrowLeft: now - 1, ArrowUp: now - 1, ArrowRight: now + 1, ArrowDown: now + 1, Home: 0, End: last,
    }[event.key];
    if (next === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    move(role, Math.max(0, Math.min(last, next)));
    cards[role].card.focus();
  }

  function columnAt(x, y) {
    return columns.findIndex(({column}) => {
      const box = column.getBoundingClientRect();
      return x >= box.left && x <= box.right && y >= box.top && y <= box.bottom;
    });
  }

  function begin(event, role, card) {
    const byTouch = event.pointerType === 'touch';
    // A finger on a card scrolls the page; on its grip it drags the card.
    if (event.button !== 0 || (byTouch && !event.target.closest('.grip'))) return;
    const start = {x: event.clientX, y: event.clientY, scroll: scrollY};
    let dragging = false;
    card.setPointerCapture(event.pointerId);

    const follow = moving => {
      const [x, y] = [moving.clientX - start.x, moving.clientY - start.y + scrollY - start.scroll];
      dragging ||= Math.hypot(x, y) > THRESHOLD_PX;
      if (!dragging) return;
      card.classList.add('dragged');
      card.style.transform = `translate(${x}px, ${y}px)`;
      const over = columnAt(moving.clientX, moving.clientY);
      columns.forEach(({column}, index) => column.classList.toggle('over', index === over));
      tierwise.explorer.preview(over < 0 ? null : tierwise.placements.moved(tierwise.state.number, role, over));
    };
    const end = ending => {
      card.removeEventListener('pointermove', follow);
      card.removeEventListener('pointerup', end);
      card.removeEventListener('pointercancel', end);
      card.classList.remove('dragged');
      card.style.transform = '';
      columns.forEach(({column}) => column.classList.remove('over'));
      const over = ending.type === 'pointerup' && dragging ? columnAt(ending.clientX, ending.clientY) : -1;
      tierwise.explorer.preview(null);
      if (over >= 0) move(role, over);
    };
    card.addEventListener('pointermove', follow);
    card.addEventListener('pointerup', end);
    card.addEventListener('pointercancel', end);
  }

  function draw() {
    tierwise.placements.digits(tierwise.state.number).forEach((device, role) => {
      const {cards: list} = columns[device];
      const {card, item} = cards[role];
      const focused = document.activeElement === card;
      if (item.parentElement !== list) list.insertBefore(item, list.querySelector('.stays')?.parentElement ?? null);
      if (focused) card.focus({preventScroll: true});
      card.setAttribute('aria-label', `${placements.title(role)}, on ${data.devices[device].name}`);
    });
    data.devices.forEach((device, index) => {
      columns[index].cost.textContent = price(device, index, tierwise.state.number);
    });
  }

  return {draw};
})();
