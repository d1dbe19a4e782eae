// Placements by number: a digit for each card, the last changes fastest, each the index of a device. A card is a role,
// or roles that move as one because their engine keeps them in one directory.
tierwise.data = JSON.parse(document.getElementById('data').textContent);

tierwise.placements = (() => {
  const {devices, roles, figures} = tierwise.data;
  const base = devices.length;
  const count = base ** roles.length;

  function digits(number) {
    const found = new Array(roles.length);
    for (let role = roles.length - 1; role >= 0; role--) {
      found[role] = number % base;
      number = Math.floor(number / base);
    }
    return found;
  }

  const numberOf = found => found.reduce((number, digit) => number * base + digit, 0);

  function moved(number, role, device) {
    const found = digits(number);
    found[role] = device;
    return numberOf(found);
  }

  // What a power cut leaves: the worst of the new devices, temporary files aside; null where nothing moved.
  const order = ['lost', 'unknown', 'flush', 'kept'];
  function state(number) {
    const found = digits(number)
      .filter((device, role) => device > 0 && roles[role].name !== 'temp')
      .map(device => order.indexOf(devices[device].state));
    return found.length ? order[Math.min(...found)] : null;
  }

  function at(number) {
    const found = {};
    for (const name of Object.keys(figures)) found[name] = figures[name][number];
    return found;
  }

  const answered = number => figures.rate[number] !== null;
  const asObject = number => Object.fromEntries(
    digits(number).flatMap((device, card) => roles[card].roles.map(role => [role, devices[device].name])));
  // The bill of one device in a placement; undefined where it holds no file.
  const bill = (number, device) => (tierwise.data.billed[number] ?? [])
    .map(index => tierwise.data.bills[index]).find(one => one.device === devices[device].name);
  const title = card => roles[card].roles.join(' + ');

  return {base, count, order, digits, numberOf, moved, state, at, answered, asObject, bill, title};
})();
