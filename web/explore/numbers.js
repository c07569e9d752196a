// Numbers for people, and for the command line.
const SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const superscript = (n) => (n < 0 ? "⁻" : "") + String(Math.abs(n)).replace(/\d/g, (c) => SUPERSCRIPT[c]);
const power = (n) => (n === 0 ? "1" : n === 1 ? "10" : "10" + superscript(n));

// Three digits: 0.0123, 45.6, 1.2·10⁻⁷.
function brief(x, digits = 3) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x === 0) return "0";
  const exponent = Math.floor(Math.log10(Math.abs(x)) + 1e-12);
  if (exponent < -3 || exponent >= 6) {
    const mantissa = (x / 10 ** exponent).toPrecision(digits).replace(/\.?0+$/, "");
    return (mantissa === "1" ? "" : mantissa + "·") + power(exponent);
  }
  return Number(x.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits, useGrouping: "min2" }).replaceAll(",", " ");
}

// A number as an exponent: ⁻⁰·¹⁹.
const raised = (x, digits = 2) => String(Number(x.toPrecision(digits))).replace(/[-\d.]/g, (c) => (c === "-" ? "⁻" : c === "." ? "·" : SUPERSCRIPT[c]));

// Lengths: 1 000, 31 623, 10⁶, 3.16·10⁸.
function lengthText(L) {
  if (!Number.isFinite(L)) return "∞";
  const exponent = Math.log10(L);
  if (Math.abs(exponent - Math.round(exponent)) < 1e-12 && exponent > 3.5) return power(Math.round(exponent));
  return L < 1e6 ? Math.round(L).toLocaleString("en").replaceAll(",", " ") : brief(L);
}

const lengthOf = (log10) => Math.max(1, Math.round(10 ** log10));
// Rounded to what a slider means, so that the command says the same number.
const exact = (x) => Number(x.toPrecision(12));
// A number as TOML reads it: always a float.
const toml = (x) => (Number.isInteger(x) && Math.abs(x) < 1e15 ? x.toFixed(1) : String(x).replace("e+", "e"));
const list = (numbers) => "[" + numbers.map(toml).join(",") + "]";
// An array of L from 10^a to 10^b.
const decades = (from, to, per) => Array.from({ length: Math.round((to - from) * per) + 1 }, (_, i) => lengthOf(from + i / per));
