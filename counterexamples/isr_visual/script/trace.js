// A trace: every state that was written down, and the model from which any other can be reached.

class Trace {
  /**
   * @param {About} about
   * @param {string} itfText
   */
  constructor(about, itfText) {
    this.about = about;
    this.itfText = itfText;
    /** @type {{ "#meta"?: { model_hash?: string }, states: Values[] }} */
    this.itf = JSON.parse(itfText);
    this.states = this.itf.states.map(({ "#meta": _, ...values }) => values);
    this.last = this.states.length - 1;
    this.intact = sha256(itfText) === about.digest;
    /** @type {Roles[]} */
    this.parts = [];
    this.drawable = this.rolesAt(0).replicas.length > 0;
    this.otherValues = unrolled(about.against);
    /** @type {Model | null} */
    this.cachedModel = null;
    this.longest = 0;
  }

  /** The model, made when somebody asks for it; null where it is not in the file. */
  get model() {
    if (!this.cachedModel && this.about.model) this.cachedModel = MODELS[this.about.model]();
    return this.cachedModel;
  }

  /** @type {(step: number) => Values} */
  values(step) {
    return this.states[step];
  }

  /**
   * The parts of a state of the trace, worked out once.
   * @type {(i: number) => Roles}
   */
  rolesAt(i) {
    this.parts[i] ??= new Roles(this.about.roles, this.values(i));
    return this.parts[i];
  }

  /** @type {(i: number) => Step | null} */
  step(i) {
    return this.about.steps[i - 1] ?? null;
  }

  /** @type {(i: number) => boolean} */
  eventful(i) {
    return i > 0 && (!this.drawable || (this.step(i)?.events.length ?? 0) > 0);
  }

  /** Whether the trace shows that a promise is broken. */
  get violates() {
    return this.about.property !== "" && !this.about.kind.startsWith("sometimes") && !this.about.anywhere;
  }

  /** Who does what in it, for headings and the gallery. */
  get title() {
    const { about } = this;
    if (about.case) return about.case.title;
    if (!about.design) return `Another program's trace, ${about.name}`;
    if (about.story.headline) return about.story.headline;
    return about.property ? `${about.design} and its promise ${about.property}` : `${about.design} at work`;
  }

  /** The step on which a page opens: the moment it breaks, of a witness the end, of a behaviour the start. */
  get opensAt() {
    const { breaks } = this.about.story;
    return breaks ?? (this.about.property ? this.last : 0);
  }

  /**
   * The promises that are broken in a state and were not in the one before.
   * @type {(i: number) => string[]}
   */
  breaksAt(i) {
    const promises = this.about.properties.filter((p) => !p.kind.startsWith("sometimes") && p.holds[i] === false);
    return promises.filter((p) => i === 0 || p.kind.endsWith("step") || p.holds[i - 1] !== false).map((p) => p.name);
  }

  /**
   * The scene of a state, or what stands for it where there are no logs.
   * @type {(i: number, width: number) => Element}
   */
  picture(i, width) {
    const before = i ? this.values(i - 1) : null;
    return this.drawScene(this.values(i), { before, changes: this.step(i)?.changes ?? [], width });
  }

  /** @type {(values: Values, options: SceneOptions) => Element} */
  drawScene(values, options) {
    const scene = new Scene(this.about.roles, values, { cells: this.cells(), ...options }).draw();
    return scene ? drawnAs(scene) : genericScene(values, options.changes ?? []);
  }

  /** The longest log of the trace, so that every step is drawn to one width. */
  cells() {
    this.longest ||= Math.max(1, ...this.states.map((_, i) => this.rolesAt(i).longest()));
    return this.longest;
  }
}

/**
 * The states of the other design, each turn holding only what changed in it.
 * @type {(against: Counterfactual | null) => Values[]}
 */
function unrolled(against) {
  /** @type {Values[]} */
  const found = [];
  for (const turn of against?.turns ?? []) found.push({ ...found.at(-1), ...turn.values });
  return found;
}

/**
 * For a state without logs: every variable as a card, what changed first in the eye.
 * @type {(values: Values, changes: Change[]) => Element}
 */
function genericScene(values, changes) {
  const lit = touchedPaths(changes);
  return h(
    "dl",
    { class: "plain-scene" },
    Object.entries(values).map(([name, value]) => {
      const listed = (sequenceOf(value) ?? []).map((x, i) => /** @type {[string, Json]} */ ([`[${i}]`, x]));
      const cells = cellsOf(value) ?? listed;
      const shown =
        cells.length && cells.length <= 40
          ? h(
              "span",
              { class: "cells" },
              cells.map(([key, x]) =>
                h(
                  "span",
                  { class: litClass("plain-cell", lit.has(name + key)) },
                  h("small", {}, labelOf(key)),
                  textOf(x),
                ),
              ),
            )
          : textOf(value);
      return h("div", { class: litClass("plain-variable", lit.has(name)) }, h("dt", {}, name), h("dd", {}, shown));
    }),
  );
}

/**
 * SHA-256 (FIPS 180-4), so that a page opened from a disk can check its own data.
 * @type {(text: string) => string}
 */
function sha256(text) {
  /** @type {number[]} */
  const primes = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
  /** @type {(x: number) => number} */
  const fraction = (x) => ((x - Math.floor(x)) * 2 ** 32) | 0;
  const k = primes.map((p) => fraction(Math.cbrt(p)));
  const hash = primes.slice(0, 8).map((p) => fraction(Math.sqrt(p)));
  const bytes = new TextEncoder().encode(text);
  const words = new Uint32Array((((bytes.length + 8) >> 6) + 1) * 16);
  bytes.forEach((b, i) => {
    words[i >> 2] |= b << (24 - (i % 4) * 8);
  });
  words[bytes.length >> 2] |= 0x80 << (24 - (bytes.length % 4) * 8);
  words[words.length - 2] = Math.floor(bytes.length / 2 ** 29);
  words[words.length - 1] = bytes.length * 8;
  /** @type {(x: number, n: number) => number} */
  const turn = (x, n) => (x >>> n) | (x << (32 - n));
  const w = new Int32Array(64);
  for (let block = 0; block < words.length; block += 16) {
    for (let i = 0; i < 64; i++) {
      if (i < 16) w[i] = words[block + i];
      else {
        const a = w[i - 15],
          b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (turn(a, 7) ^ turn(a, 18) ^ (a >>> 3)) + (turn(b, 17) ^ turn(b, 19) ^ (b >>> 10));
      }
    }
    let [a, b, c, d, e, f, g, h] = hash;
    for (let i = 0; i < 64; i++) {
      const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i]) | 0;
      const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((x, i) => {
      hash[i] = (hash[i] + x) | 0;
    });
  }
  return hash.map((x) => (x >>> 0).toString(16).padStart(8, "0")).join("");
}
