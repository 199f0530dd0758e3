// Numbers as people read them.

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const clockFormat = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

export const count = (number) => whole.format(number);

export const plural = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;

export function bytes(size) {
  let unit = 0;
  while (size >= 999.5 && unit < UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${(unit && size < 9.95 ? oneDigit : whole).format(size)} ${UNITS[unit]}`;
}

export const rate = (bytesPerS) => (bytesPerS === null ? "unknown" : `${bytes(bytesPerS)}/s`);

export const percent = (share) => `${whole.format(100 * share)} %`;

export function duration(seconds) {
  if (seconds < 10) return `${oneDigit.format(seconds)} s`;
  if (seconds < 120) return `${whole.format(seconds)} s`;
  if (seconds < 7200) return `${whole.format(seconds / 60)} min`;
  if (seconds < 172800) return `${whole.format(seconds / 3600)} h`;
  return `${whole.format(seconds / 86400)} days`;
}

export const clock = (ms) => clockFormat.format(new Date(ms));
