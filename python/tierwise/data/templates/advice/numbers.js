// Figures as people read them; the same rules as model/numbers.py.
tierwise.numbers = (() => {
  const NONE = '–';
  const count = value => group(String(value));
  const group = text => text.replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');

  function significant(value, figures = 3) {
    if (value === null || value === undefined) return NONE;
    if (value === 0) return '0';
    if (Math.abs(value) < 0.001) return value > 0 ? '<0.001' : '>-0.001';
    const decimals = figures - 1 - Math.floor(Math.log10(Math.abs(value)));
    const factor = 10 ** decimals;
    const [whole, part] = (Math.round(value * factor) / factor).toFixed(Math.max(decimals, 0)).split('.');
    return group(whole) + (part ? '.' + part : '');
  }

  function ratio(value) {
    if (value === null || value === undefined) return NONE;
    if (value < 0.1) return significant(value, 2);
    return value < 1.95 ? value.toFixed(2) : value < 99.5 ? value.toFixed(1) : significant(value);
  }

  function microseconds(value) {
    if (value === null || value === undefined) return NONE;
    if (Math.abs(value) >= 1e6) return significant(value / 1e6) + '\u00a0s';
    if (Math.abs(value) >= 1e3) return significant(value / 1e3) + '\u00a0ms';
    return significant(value) + '\u00a0µs';
  }

  const seconds = value => value === null || value === undefined ? NONE : microseconds(value * 1e6);

  function size(bytes) {
    for (const [power, unit] of [[4, 'TiB'], [3, 'GiB'], [2, 'MiB'], [1, 'KiB']]) {
      if (bytes >= 1024 ** power) return significant(bytes / 1024 ** power) + '\u00a0' + unit;
    }
    return bytes + '\u00a0B';
  }

  function percent(share) {
    const value = 100 * share;
    return (Math.abs(value) >= 9.95 || value === 0 ? value.toFixed(0) : value.toFixed(1)) + '\u00a0%';
  }

  function money(amount) {
    if (amount === null || amount === undefined) return NONE;
    const symbol = '\u00a0' + tierwise.data.currency;
    if (amount > 0 && amount < 0.01) return 'less than 0.01' + symbol;
    const size = Math.abs(amount);
    const whole = size === Math.round(size) || size >= 100;
    return (amount < 0 ? '−' : '') + group(size.toFixed(whole ? 0 : 2)) + symbol;
  }

  function months(value) {
    if (value === null || value === undefined) return NONE;
    if (value >= 120) return 'over 10 years';
    if (value >= 24) return (value / 12).toFixed(1) + ' years';
    return value >= 2 ? value.toFixed(0) + ' months' : (value * 30.4).toFixed(0) + ' days';
  }

  return {NONE, count, significant, ratio, microseconds, seconds, size, percent, money, months};
})();
