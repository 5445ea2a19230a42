// Watch expressions and search by predicate: a small language over the variables of a state.
//
//   high_watermark[r1] < 1     acked - log[r2]     r2 in controller_isr and size(log[r1]) > 0     old.log != log
//
// Names that are no variables stand for themselves (r1). `old.` is the state before. No other code is ever run.

const WATCH_TOKEN = /\s*(?:(\d+)|([A-Za-z_][\w.]*)|(==|!=|<=|>=|[-+<>()[\]{},]))/y;
/** @type {{ [operator: string]: (a: Plain, b: Plain) => boolean }} */
const COMPARE = {
  "==": (a, b) => same(a, b),
  "!=": (a, b) => !same(a, b),
  "<": (a, b) => Number(a) < Number(b),
  "<=": (a, b) => Number(a) <= Number(b),
  ">": (a, b) => Number(a) > Number(b),
  ">=": (a, b) => Number(a) >= Number(b),
  in: (a, b) => Array.isArray(b) && b.some((x) => same(x, a)),
};

/** Where names are looked up. @typedef {{ now: (name: string) => Watched, old: (name: string) => Watched }} Names */
/** @typedef {(e: Names) => Watched} Term */

/**
 * A function (values, old values) => value; throws a sentence for what is no expression.
 * @type {(text: string) => (values: Values, old: Values | null) => Watched}
 */
function watchExpression(text) {
  /** @type {string[]} */
  const tokens = [];
  WATCH_TOKEN.lastIndex = 0;
  const end = text.trimEnd().length;
  while (WATCH_TOKEN.lastIndex < end) {
    const at = WATCH_TOKEN.lastIndex,
      found = WATCH_TOKEN.exec(text);
    if (!found) throw new Error(`not understood from '${text.slice(at).trim()}'`);
    tokens.push(found[1] || found[2] || found[3]);
  }
  let i = 0;
  /** @type {(t: string) => boolean} */
  const take = (t) => {
    if (tokens[i] !== t) return false;
    i += 1;
    return true;
  };
  /** @type {(t: string) => void} */
  const need = (t) => {
    if (!take(t)) throw new Error(`'${t}' expected${i < tokens.length ? ` before '${tokens[i]}'` : " at the end"}`);
  };
  /** @type {(closing: string) => Term[]} */
  const list = (closing) => {
    /** @type {Term[]} */
    const parts = [];
    while (!take(closing)) {
      parts.push(any());
      if (tokens[i] !== closing) need(",");
    }
    return parts;
  };
  /** @type {() => Term} */
  const any = () => binary(["or"], () => binary(["and"], negation));
  /** @type {(ops: string[], below: () => Term) => Term} */
  function binary(ops, below) {
    let left = below();
    while (ops.includes(tokens[i])) {
      const op = tokens[i++],
        a = left,
        b = below();
      left = op === "or" ? (e) => a(e) === true || b(e) === true : (e) => a(e) === true && b(e) === true;
    }
    return left;
  }
  /** @returns {Term} */
  function negation() {
    if (!take("not")) return comparison();
    const a = negation();
    return (e) => a(e) !== true;
  }
  /** @returns {Term} */
  function comparison() {
    const a = sum(),
      op = tokens[i];
    if (!(op in COMPARE)) return a;
    i += 1;
    const b = sum();
    return (e) => COMPARE[op](a(e), b(e));
  }
  /** @returns {Term} */
  function sum() {
    let left = item();
    while (tokens[i] === "+" || tokens[i] === "-") {
      const op = tokens[i++],
        a = left,
        b = item();
      left = (e) => combine(op, a(e), b(e));
    }
    return left;
  }
  /** @type {(op: string, x: Watched, y: Watched) => Watched} */
  function combine(op, x, y) {
    if (Array.isArray(x) && Array.isArray(y)) {
      /** @type {(m: Watched) => boolean} */
      const inBoth = (m) => y.some((z) => same(z, m));
      return op === "-" ? x.filter((m) => !inBoth(m)) : [...x.filter((m) => !inBoth(m)), ...y];
    }
    return String(op === "-" ? Number(x) - Number(y) : Number(x) + Number(y));
  }
  /** @returns {Term} */
  function item() {
    let value = atom();
    while (take("[")) {
      const inner = value,
        key = any();
      need("]");
      value = (e) => {
        const m = inner(e),
          k = key(e);
        return (Array.isArray(m) ? m[Number(k)] : isObject(m) ? m[k] : undefined) ?? "none";
      };
    }
    return value;
  }
  /** @returns {Term} */
  function atom() {
    if (take("(")) {
      const inner = any();
      need(")");
      return inner;
    }
    if (take("[")) {
      const parts = list("]");
      return (e) => parts.map((p) => p(e));
    }
    if (take("{")) {
      const parts = list("}");
      return (e) => parts.map((p) => p(e));
    }
    const token = tokens[i++];
    if (token === undefined) throw new Error("something is missing at the end");
    if (!/^\w/.test(token)) throw new Error(`'${token}' is not expected there`);
    if (token === "size" && take("(")) {
      const inner = any();
      need(")");
      return (e) => {
        const v = inner(e);
        return String(Array.isArray(v) ? v.length : isObject(v) ? Object.keys(v).length : 0);
      };
    }
    if (token.startsWith("old.")) return (e) => e.old(token.slice(4)) ?? "none";
    return (e) => e.now(token) ?? token;
  }
  const whole = any();
  if (i < tokens.length) throw new Error(`'${tokens[i]}' is not expected there`);
  return (values, old) => {
    /** @type {(from: Values | null) => (name: string) => Watched} */
    const reading = (from) => (name) => (from && name in from ? plainOf(from[name]) : undefined);
    return whole({ now: reading(values), old: reading(old) });
  };
}

/** @type {(v: Watched) => string} */
function watchText(v) {
  if (Array.isArray(v)) return `[${v.map(watchText).join(", ")}]`;
  if (isObject(v))
    return `(${Object.entries(v)
      .map(([k, x]) => `${k}: ${watchText(x)}`)
      .join(", ")})`;
  return String(v);
}
