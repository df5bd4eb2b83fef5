/**
 * Numbers with units, in the one form that Perspex gives them: three significant digits, halves
 * rounded away from zero. `tests/data/units.json` holds examples for this side and for Python's.
 */

/** What is written where there is no number. */
const NONE = '–';

const SIZES = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'] as const;

/** A span of time in `us`, `ms` or `s`: `0.870 us`, `12.3 us`, `1.20 ms`, `3.40 s`, `1,235 s`. */
export function duration(seconds: number | null | undefined): string {
  if (!isNumber(seconds)) {
    return NONE;
  }
  const span = Math.abs(seconds);
  if (span === 0) {
    return '0 s';
  }
  for (const [scale, unit] of [
    [1e6, 'us'],
    [1e3, 'ms']
  ] as const) {
    if (span * scale < 999.5) {
      return signed(seconds, `${threeDigits(span * scale)} ${unit}`);
    }
  }
  return signed(seconds, `${span < 999.5 ? threeDigits(span) : grouped(span)} s`);
}

/** A number of bytes, in powers of 1,024: `1,000 B`, `39.1 KiB`, `3.91 MiB`. */
export function size(bytes: number | null | undefined): string {
  if (!isNumber(bytes)) {
    return NONE;
  }
  let left = Math.round(Math.abs(bytes));
  if (left < 1024) {
    return signed(bytes, `${grouped(left)} B`);
  }
  for (const unit of SIZES) {
    left /= 1024;
    if (left < 999.5) {
      return signed(bytes, `${threeDigits(left)} ${unit}`);
    }
  }
  return signed(bytes, `${grouped(left)} EiB`);
}

/** A number of things: `950`, `12,300`. */
export function count(n: number | null | undefined): string {
  return isNumber(n) ? signed(n, grouped(Math.abs(n))) : NONE;
}

function isNumber(value: number | null | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

/** Of a number that is less than 999.5. */
function threeDigits(value: number): string {
  return value < 0.9995
    ? value.toPrecision(3)
    : value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

/** A whole number with commas, whatever the language of the page is: one form everywhere. */
const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

function grouped(value: number): string {
  return whole.format(value);
}

function signed(value: number, text: string): string {
  return value < 0 && /[1-9]/.test(text) ? `-${text}` : text;
}
