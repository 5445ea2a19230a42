// A model that runs in the page: which steps it allows in a state, where they lead, which promises they break. The
// functions at the top are what the model's own code calls (isr_visual/model_script.py writes it).

/** @type {(a: Value, b: Value) => boolean} */
const equal = (a, b) => a === b || (Array.isArray(a) && Array.isArray(b) && JSON.stringify(a) === JSON.stringify(b));
/** @type {(position: number) => number} */
const some = (position) => (position < 0 ? position : position + 1);
/** @type {(maybe: number) => number} */
const positionIn = (maybe) => (maybe > 0 ? maybe - 1 : maybe);
/** @type {(maybe: number, otherwise: number, low: number) => number} */
const orElse = (maybe, otherwise, low) => (maybe ? positionIn(maybe) + low : otherwise);
/** @type {(set: number, position: number) => boolean} */
const has = (set, position) => position >= 0 && ((set >> position) & 1) === 1;
/** @type {(position: number, size: number) => number} */
const bit = (position, size) => (position >= 0 && position < size ? 1 << position : 0);
/** @type {(map: Value[], position: number, otherwise: Value) => Value} */
const get = (map, position, otherwise) => (position >= 0 && position < map.length ? map[position] : otherwise);
/** @type {(map: Value[], position: number, value: Value) => Value[]} */
const put = (map, position, value) => (position >= 0 && position < map.length ? map.with(position, value) : map);
/** @type {(list: Value[], start: Value[]) => boolean} */
const begins = (list, start) => equal(list.slice(0, start.length), start);
/** @type {(low: number, end: number) => number[]} */
const upTo = (low, end) => Array.from({ length: Math.max(0, end - low) }, (_, i) => low + i);
/** @type {(set: number, low: number) => number[]} */
const members = (set, low) => upTo(0, 31).flatMap((i) => (has(set, i) ? [i + low] : []));
/** @type {(values: number[], otherwise: number) => number} */
const least = (values, otherwise) => (values.length ? Math.min(...values) : otherwise);
/** @type {(values: number[], otherwise: number) => number} */
const most = (values, otherwise) => (values.length ? Math.max(...values) : otherwise);

/**
 * A value of the model as an ITF expression.
 * @type {(value: Value, type: ModelType) => Json}
 */
function expressionOf(value, type) {
  if (Array.isArray(value)) {
    if (type.kind === "seq") return value.map((v) => expressionOf(v, of(type)));
    const key = /** @type {ModelType} */ (type.key);
    return { "#map": value.map((v, i) => [expressionOf(i + (key.low ?? 0), key), expressionOf(v, of(type))]) };
  }
  if (type.kind === "bool") return Boolean(value);
  const n = Number(value);
  if (type.kind === "sort") return `${type.prefix}${n + 1}`;
  if (type.kind === "choice") return type.members?.[n] ?? "";
  if (type.kind === "set") return { "#set": members(n, of(type).low ?? 0).map((m) => expressionOf(m, of(type))) };
  if (type.kind === "maybe" && n === 0) return { tag: "None", value: { "#tup": [] } };
  if (type.kind === "maybe") return { tag: "Some", value: expressionOf(positionIn(n) + (of(type).low ?? 0), of(type)) };
  return n;
}

/** @type {(type: ModelType) => ModelType} */
const of = (type) => /** @type {ModelType} */ (type.of);

/**
 * Every step that the model allows in a state, in its order, with the promises that it breaks anew: those that held
 * before it.
 * @type {(model: Model, state: State) => Way[]}
 */
function waysFrom(model, state) {
  const broken = brokenIn(model, state);
  return model.actions.flatMap(([action, types, steps]) =>
    steps(state).map(([parameters, to]) => ({
      action,
      parameters: parameters.map((value, i) => `${types[i][0]}=${textOf(expressionOf(value, types[i][1]))}`).join(", "),
      to,
      breaks: brokenBy(model, state, to).filter((name) => !broken.includes(name)),
    })),
  );
}

/** @type {(model: Model, state: State) => string[]} */
const brokenIn = (model, state) =>
  model.promises.filter(([, kind, holds]) => kind === "always" && !holds(state)).map(([name]) => name);

/** @type {(model: Model, before: State, state: State) => string[]} */
const brokenBy = (model, before, state) =>
  model.promises
    .filter(([, kind, holds]) => (kind === "always" ? !holds(state) : !holds(before, state)))
    .map(([name]) => name);

/** @type {(model: Model, state: State) => Values} */
const valuesOf = (model, state) =>
  Object.fromEntries(model.variables.map(([name, type], i) => [name, expressionOf(state[i], type)]));
