// ITF expressions: the same three readings as in the command line (cells by key, members of a set, items of a list).

/**
 * @template T
 * @param {T} v
 * @returns {v is Extract<T, { [key: string]: any }> & { [key: string]: any }}
 */
const isObject = (v) => v !== null && typeof v === "object" && !Array.isArray(v);
/** @type {(v: Json | undefined, tag: string) => Json[] | null} */
const tagged = (v, tag) => (isObject(v) && Array.isArray(v[tag]) ? v[tag] : null);
/** @type {(v: Json | undefined) => v is { tag: Json, value: Json }} */
const isVariant = (v) => isObject(v) && Object.keys(v).sort().join() === "tag,value";
/** @type {(v: Json | undefined) => Json[] | null} */
const sequenceOf = (v) => (Array.isArray(v) ? v : tagged(v, "#tup"));
/** @type {(v: Json | undefined) => string[] | null} */
const membersOf = (v) => (tagged(v, "#set") || null)?.map(textOf) ?? null;

/**
 * The cells of a map by `[key]`, those of a record by `.field`, as pairs; null for what has none.
 * @type {(v: Json | undefined) => [string, Json][] | null}
 */
function cellsOf(v) {
  const entries = tagged(v, "#map");
  if (entries) return entries.flatMap((e) => (Array.isArray(e) && e.length === 2 ? [[`[${textOf(e[0])}]`, e[1]]] : []));
  if (!isObject(v) || isVariant(v) || Object.keys(v).some((k) => k.startsWith("#"))) return null;
  return Object.entries(v).map(([k, x]) => [`.${k}`, x]);
}

/** @type {(cell: string) => string} */
const labelOf = (cell) => (cell.startsWith("[") ? cell.slice(1, -1) : cell.slice(1));

/**
 * An ITF expression as people write it: r1, {r1, r2}, (r1: [0, 1]), none.
 * @type {(v: Json | undefined) => string}
 */
function textOf(v) {
  if (typeof v === "string") return v || '""';
  const items = sequenceOf(v);
  if (items) return `[${items.map(textOf).join(", ")}]`;
  const members = membersOf(v);
  if (members) return `{${members.join(", ")}}`;
  if (isVariant(v)) {
    const tag = textOf(v.tag);
    return tag === "None" ? "none" : tag === "Some" ? textOf(v.value) : `${tag}(${textOf(v.value)})`;
  }
  const cells = cellsOf(v);
  if (cells) return `(${cells.map(([k, x]) => `${labelOf(k)}: ${textOf(x)}`).join(", ")})`;
  if (isObject(v)) return String(v["#bigint"] ?? v["#unserializable"] ?? JSON.stringify(v));
  return String(v);
}

/**
 * An ITF expression as arrays, objects and texts, for drawing.
 * @type {(v: Json | undefined) => Plain}
 */
function plainOf(v) {
  const cells = cellsOf(v);
  if (cells) return Object.fromEntries(cells.map(([k, x]) => [labelOf(k), plainOf(x)]));
  return membersOf(v) ?? sequenceOf(v)?.map(plainOf) ?? textOf(v);
}

/** @type {(a: unknown, b: unknown) => boolean} */
const same = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);

/**
 * The differing cells of two ITF expressions: `between` of isr_trace.diff, for branches that were never written down.
 * @type {(path: string, before: Json | undefined, after: Json | undefined) => Change[]}
 */
function between(path, before, after) {
  if (same(before, after)) return [];
  const old = before === undefined ? null : cellsOf(before),
    now = after === undefined ? null : cellsOf(after);
  if (old && now) {
    const a = new Map(old),
      b = new Map(now);
    return [...new Set([...a.keys(), ...b.keys()])].flatMap((key) => between(path + key, a.get(key), b.get(key)));
  }
  const oldSet = membersOf(before),
    newSet = membersOf(after);
  if (oldSet && newSet) {
    const gone = oldSet.filter((m) => !newSet.includes(m)).join(", "),
      come = newSet.filter((m) => !oldSet.includes(m)).join(", ");
    return gone && come
      ? [{ path, before: textOf(before), after: textOf(after) }]
      : gone || come
        ? [{ path, before: gone, after: come }]
        : [];
  }
  const oldList = sequenceOf(before),
    newList = sequenceOf(after);
  if (oldList && newList) {
    const both = Math.min(oldList.length, newList.length);
    return [
      ...oldList.slice(0, both).flatMap((x, i) => between(`${path}[${i}]`, x, newList[i])),
      ...oldList.slice(both).map((x) => ({ path, before: textOf(x), after: "" })),
      ...newList.slice(both).map((x) => ({ path, before: "", after: textOf(x) })),
    ];
  }
  return [
    { path, before: before === undefined ? "" : textOf(before), after: after === undefined ? "" : textOf(after) },
  ];
}

/** @type {(old: Values, now: Values) => Change[]} */
const changesBetween = (old, now) => Object.keys(now).flatMap((name) => between(name, old[name], now[name]));
