// The scene: one state of a replicated log. Every replica keeps its place; what the last step changed is ringed.
//
// Three different marks: the replica's own watermark (a flag above its cells), what the leader has seen of a
// follower (a tick below the leader's cells), and the truly committed sequence (a row of its own, below). Records are
// appended here, copied to another log, or committed, the safer the fuller; acknowledged and read are marks on them.
//
// It is stated here once. It comes out as data (a Shape), which the page makes into elements and the command line, which
// evaluates this same file, into text.

const CELL = 58;
const CELL_HEIGHT = 38;
const GUTTER = 112;
const EYE = "q6 -7 12 0 q-6 7 -12 0 z m4.5 0 a1.5 1.5 0 1 0 3 0 a1.5 1.5 0 1 0 -3 0";
/** Whom somebody has chosen, by the role of the choice. @type {[string, string][]} */
const CHOICES = [
  ["vote", "vote for"],
  ["support", "supports"],
];

/** @type {{ [standing: string]: string }} */
const STANDING = {
  committed: "known here to be committed",
  copied: "copied to another log, not known here to be committed",
  appended: "in this log only",
};

/**
 * An SVG element as data.
 * @type {(tag: string, attributes: Shape["attributes"], ...parts: (Part | Part[])[]) => Shape}
 */
const shape = (tag, attributes, ...parts) => ({ tag, attributes, parts: parts.flat().filter((part) => part !== null) });

/** @type {(kind: string, changed: unknown) => string} */
const litClass = (kind, changed) => (changed ? `${kind} lit` : kind);

/** @type {(x: number, y: number, kind: string, words: string) => Shape} */
const label = (x, y, kind, words) => shape("text", { x, y, class: kind }, words);

/** @type {(names: string[]) => string} */
const inBraces = (names) => `{${names.join(", ")}}`;

/**
 * Which cells of which variables a list of changes touches: `log[r1]`, `acked`.
 * @type {(changes: Change[]) => Set<string>}
 */
function touchedPaths(changes) {
  /** @type {Set<string>} */
  const found = new Set();
  for (const { path } of changes) {
    found.add(path).add(path.split(/[[.]/)[0]);
    const first = /^\w+\[[^\]]*\]/.exec(path);
    if (first) found.add(first[0]);
  }
  return found;
}

class Scene {
  /** How many were drawn: each has patterns of its own, for a hidden picture lends nothing. */
  static drawings = 0;

  /**
   * @param {RoleTable} table
   * @param {Values} values
   * @param {SceneOptions} options
   */
  constructor(table, values, { changes = [], before = null, width = 760, cells = 1, label = "" } = {}) {
    this.table = table;
    this.roles = new Roles(table, values);
    this.before = before ? new Roles(table, before) : null;
    this.touchedPaths = touchedPaths(changes);
    this.narrow = width < 520;
    this.width = Math.round(Math.min(Math.max(width, 330), 860));
    this.label = label;
    this.messages = this.roles.messages();
    this.gutter = this.narrow || !table.mail.some((m) => m.variable in values) ? 0 : GUTTER;
    this.card = this.width - this.gutter;
    this.logX = this.narrow ? 16 : Math.min(182, 182 - Math.max(0, 640 - this.width) / 2);
    const end = this.roles.longest();
    /** How many offsets there is room for; `first`: the first that is shown, all before share one place. */
    this.room = Math.min(Math.max(cells, end), Math.max(2, Math.floor((this.card - this.logX - 62) / CELL)));
    this.first = end > this.room ? end - this.room + 1 : 0;
    this.end = this.logX + this.room * CELL + 10;
    this.y = 0;
    /** Where messages to and from somebody begin and end. @type {Map<string, number>} */
    this.middle = new Map();
    Scene.drawings += 1;
    this.hatch = `hatch-${Scene.drawings}`;
  }

  /**
   * Where the cell of an offset begins; of one that is not shown, where those before are.
   * @type {(offset: number) => number}
   */
  x(offset) {
    return this.logX + (this.first ? Math.max(0, offset - this.first + 1) : offset) * CELL;
  }

  /** @type {(role: string, replica?: string) => boolean} */
  hasChanged(role, replica) {
    const name = this.roles.names[role] ?? role;
    return this.touchedPaths.has(replica === undefined ? name : `${name}[${replica}]`);
  }

  /**
   * The picture, null for a state without logs.
   * @returns {Shape | null}
   */
  draw() {
    if (!this.roles.replicas.length) return null;
    const parts = [this.controller(), ...this.roles.replicas.map((r) => this.replica(r)), this.clients()];
    if (this.gutter) parts.push(this.wires());
    const size = { width: this.width, height: this.y, role: "img", "aria-label": this.label || this.inWords() };
    const attributes = { class: "scene", viewBox: `0 0 ${this.width} ${this.y}`, ...size };
    return shape("svg", attributes, patterns(this.hatch), parts);
  }

  /** The state in a sentence per replica, for those who do not see it. */
  inWords() {
    const rows = this.roles.replicas.map((r) => {
      return `${r} ${this.roles.stateInWords(r)}, log [${this.roles.log(r).join(" ")}], watermark ${this.roles.watermark(r) ?? "unknown"}`;
    });
    return [...rows, ...(this.roles.has("isr") ? [`in sync ${inBraces(this.roles.many("isr"))}`] : [])].join("; ");
  }

  /** @type {(y: number, height: number, kind: string) => Shape} */
  box(y, height, kind) {
    return shape("rect", { x: 0.5, y: y + 0.5, width: this.card - 1, height: height - 1, rx: 10, class: kind });
  }

  controller() {
    const { roles } = this;
    if (!roles.has("leader") && !roles.has("isr")) return null;
    const y = this.y;
    const compact = this.card < 306 + roles.replicas.length * 66;
    const height = compact && roles.has("isr") ? 72 : 46;
    this.y += height + 12;
    this.middle.set("controller", y + height / 2);
    const leader = roles.parts.leader;
    const facts = [];
    if (leader !== undefined) facts.push(leader === "none" ? "no leader" : `leader ${leader}`);
    if (roles.has("controller epoch")) facts.push(`epoch ${roles.parts["controller epoch"]}`);
    const lit = this.hasChanged("leader") || this.hasChanged("controller epoch");
    const lines = [
      label(16, y + 28, "t-name", "Controller"),
      label(112, y + 28, litClass("t-fact", lit), facts.join("  ·  ")),
    ];
    const [x, chips] = compact ? [52, y + 40] : [306, y + 12];
    if (roles.has("isr")) {
      lines.push(label(x - 34, chips + 15, "t-small", "ISR"));
      lines.push(...roles.replicas.map((r, i) => this.chip(r, x + i * 66, chips)));
    }
    const elr = roles.many("elr");
    if (elr.length) {
      const words = `ELR ${inBraces(elr)}`;
      const after = x + roles.replicas.length * 66 + 4;
      const [atX, atY] = after + words.length * 6.4 < this.card ? [after, chips + 15] : [this.card - 90, y + 18];
      lines.push(label(atX, atY, "t-small", words));
    }
    return shape("g", {}, this.box(y, height, "card-box outer"), lines);
  }

  /**
   * Membership: filled in sync, dashed eligible, struck through fenced.
   * @type {(r: string, x: number, y: number) => Shape}
   */
  chip(r, x, y) {
    const [inside, eligible, fenced] = ["isr", "elr", "fenced"].map((role) => this.roles.many(role).includes(r));
    const lit = this.hasChanged("isr") && this.before && this.before.many("isr").includes(r) !== inside;
    const kind = inside ? "in" : eligible ? "eligible" : "out";
    const about = inside ? "in the ISR" : eligible ? "in the ELR" : "not in the ISR";
    const struck = fenced ? "line-through" : null;
    return shape(
      "g",
      { class: litClass(`chip ${kind}`, lit) },
      shape("rect", { x, y, width: 58, height: 22, rx: 11 }),
      shape("text", { x: x + 29, y: y + 15, "text-anchor": "middle", "text-decoration": struck }, r),
      shape("title", {}, `${r} is ${about}${fenced ? ", and fenced" : ""}`),
    );
  }

  /** @type {(r: string) => Shape} */
  replica(r) {
    const { y } = this;
    const leads = this.roles.leads(r);
    const down = this.roles.down(r);
    const logY = y + (this.narrow ? 70 : 38);
    const parts = [...this.head(r, y, leads, down), ...this.log(r, logY)];
    let below = logY + CELL_HEIGHT + 8;
    const seen = leads && this.roles.seenEnds ? this.roles.seenEnds[r] : null;
    if (isObject(seen)) {
      parts.push(...this.seenMarks(r, seen, logY + CELL_HEIGHT));
      below += 18;
    }
    const own = this.messages.filter((m) => m.key === r).map((m) => this.letter(m));
    for (const line of [leads ? this.formula(r) : null, ...own]) {
      if (!line) continue;
      parts.push(shape("text", { x: this.logX, y: below + 12, class: "t-small" }, line));
      below += 20;
    }
    const height = below - y + 8;
    this.middle.set(r, logY + CELL_HEIGHT / 2);
    this.y += height + 12;
    const box = this.box(y, height, `card-box${leads ? " leads" : ""}${down ? " down" : ""}`);
    return shape("g", { class: `replica${down ? " down" : ""}` }, box, parts);
  }

  /**
   * A message in words, below the log of whose it is.
   * @type {(m: Message) => Shape}
   */
  letter(m) {
    const arrow = m.asks ? `${m.text} → ${m.other}` : `${m.other || "?"} → ${m.key}: ${m.text}`;
    const room = Math.floor((this.card - this.logX - arrow.length * 6.6) / 6.2);
    let said = m.said.join(", ");
    if (said.length > room) said = `${said.slice(0, Math.max(0, room - 1))}…`;
    const kind = litClass(`mail ${m.kind}`, this.touchedPaths.has(`${m.kind}[${m.key}]`));
    return shape("tspan", { class: kind }, arrow, shape("tspan", { class: "quiet" }, `  ${said}`));
  }

  /** @type {(r: string, y: number, leads: boolean, down: boolean) => Shape[]} */
  head(r, y, leads, down) {
    const { roles, before } = this;
    const deposed = leads && roles.has("leader") && !roles.elected(r);
    const what = deposed ? "thinks it leads" : roles.stateOf(r);
    const epoch = roles.of("epoch", r);
    const fell = this.hasChanged("alive") && before !== null && before.down(r) !== down;
    const lit = ["follows", "epoch", "role", "vote", "support"].some((role) => this.hasChanged(role, r)) || fell;
    const wide = what.length * 6.4 + 18;
    const kind = down ? "down" : leads ? "leads" : "follows";
    const badge = shape(
      "g",
      { class: `badge ${kind}${deposed ? " deposed" : ""}` },
      shape("rect", { x: 48, y: y + 13, width: wide, height: 20, rx: 10 }),
      shape("text", { x: 48 + wide / 2, y: y + 27, "text-anchor": "middle" }, what),
    );
    const facts = [];
    if (epoch !== undefined && !down) facts.push(`epoch ${epoch}`);
    for (const [role, words] of CHOICES) {
      const choice = roles.of(role, r);
      if (typeof choice === "string" && choice !== "none") facts.push(`${words} ${choice}`);
    }
    if (roles.many("isr").includes(r)) facts.push("in sync");
    else if (roles.has("isr")) facts.push("not in sync");
    const name = label(16, y + 28, litClass("t-name", lit), r);
    const said = facts.join("  ·  ");
    if (this.narrow) return [name, badge, label(66 + what.length * 6.4 + 12, y + 28, "t-small", said)];
    // side by side where there is room before the log, else one below the other
    const lines = 16 + said.length * 6.2 < this.logX - 8 ? [said] : facts;
    return [name, badge, ...lines.map((words, k) => label(16, y + 54 + 17 * k, "t-small", words))];
  }

  // logs

  /**
   * A place for each offset that is shown, made by `draw`, and one for all before.
   * @type {(y: number, count: number, draw: (offset: number) => Shape) => Shape[]}
   */
  places(y, count, draw) {
    const offsets = Array.from({ length: this.room - (this.first ? 1 : 0) }, (_, k) => this.first + k);
    const earlier = this.first && count ? [this.earlier(Math.min(this.first, count), y)] : [];
    return [...earlier, ...offsets.map(draw)];
  }

  /** @type {(count: number, y: number) => Shape} */
  earlier(count, y) {
    return shape(
      "g",
      { class: "cell hole before" },
      outline(this.logX, y),
      cellText(this.logX, y + 22, "t-epoch", `${count} before`),
      shape("title", {}, `${count} earlier, for which there is no room`),
    );
  }

  /** @type {(r: string, y: number) => Shape[]} */
  log(r, y) {
    const log = this.roles.log(r);
    const watermark = this.roles.watermark(r);
    const old = this.before?.log(r) ?? [];
    const lit = this.hasChanged("log", r);
    const parts = this.places(y, log.length, (o) =>
      log[o] === undefined
        ? this.hole(r, o, y, lit ? old[o] : undefined)
        : this.cell(log[o], o, y, this.standing(r, o, watermark), lit && old[o] !== log[o]),
    );
    if (watermark !== null) parts.push(this.flag(this.x(watermark) - 3, y, watermark, r));
    return [...parts, label(this.end, y + 23, litClass("t-small", lit), `LEO ${log.length}`)];
  }

  /**
   * How safe a record is, as far as its replica knows.
   * @type {(r: string, o: number, watermark: number | null) => string}
   */
  standing(r, o, watermark) {
    if (watermark !== null && o < watermark) return "committed";
    const others = this.roles.replicas.filter((other) => other !== r);
    return others.some((other) => this.roles.log(other)[o] === this.roles.log(r)[o]) ? "copied" : "appended";
  }

  /** @type {(record: string, o: number, y: number, standing: string, lit: boolean) => Shape} */
  cell(record, o, y, standing, lit) {
    const epoch = this.roles.epochOf(record);
    const acked = this.roles.many("acked").includes(record);
    const read = this.roles.many("consumed").includes(record);
    const tone = `e${(Number(epoch ?? 0) || 0) % 6}`;
    const x = this.x(o);
    const about = [`record ${record}`];
    if (epoch !== undefined) about.push(`written in epoch ${epoch}`);
    about.push(STANDING[standing]);
    if (acked) about.push("acknowledged to its producer");
    if (read) about.push("read by a consumer");
    const fill = standing === "committed" ? null : `url(#${this.hatch}${standing === "copied" ? "-fine" : ""})`;
    const inner = { width: CELL - 10, height: CELL_HEIGHT - 2, rx: 5, class: "hatch" };
    const ring = { width: CELL - 2, height: CELL_HEIGHT + 6, rx: 8, class: "ring" };
    return shape(
      "g",
      { class: litClass(`cell ${tone} ${standing}`, lit) },
      shape("rect", { x: x + 2, y, width: CELL - 8, height: CELL_HEIGHT, rx: 6, class: "fill" }),
      fill ? shape("rect", { x: x + 3, y: y + 1, ...inner, fill }) : null,
      lit ? shape("rect", { x: x - 1, y: y - 3, ...ring }) : null,
      cellText(x, y + (epoch === undefined ? 24 : 17), "t-record", record),
      epoch === undefined ? null : cellText(x, y + 31, "t-epoch", `epoch ${epoch}`.slice(0, 8)),
      acked ? shape("path", { d: `M${x + CELL - 17} ${y + 7} l3 3 l5 -6`, class: "tick" }) : null,
      read ? shape("path", { d: `M${x + 6} ${y + 9} ${EYE}`, class: "read" }) : null,
      shape("title", {}, about.join(", ")),
    );
  }

  /**
   * What should be at an offset: the committed record, else an acknowledged one that some log has there.
   * @type {(o: number) => string | undefined}
   */
  expected(o) {
    const acked = this.roles.many("acked");
    const there = this.roles.replicas.map((r) => this.roles.log(r)[o]);
    return this.roles.many("committed")[o] ?? there.find((record) => record !== undefined && acked.includes(record));
  }

  /**
   * An offset that holds nothing: outlined red where the leader lacks an acknowledged or committed record.
   * @type {(r: string, o: number, y: number, cut?: string) => Shape}
   */
  hole(r, o, y, cut) {
    const missing = this.expected(o);
    const x = this.x(o);
    const gone = missing !== undefined && (this.roles.elected(r) || this.roles.leads(r));
    const text = cut !== undefined ? `${cut} cut` : gone ? `no ${missing}` : "";
    return shape(
      "g",
      { class: `cell hole${gone ? " gone" : ""}${cut !== undefined ? " cut" : ""}` },
      outline(x, y),
      text ? cellText(x, y + 22, "t-epoch", text) : null,
      gone ? shape("title", {}, `record ${missing} was promised, and is not here`) : null,
    );
  }

  /** @type {(x: number, y: number, watermark: number, r: string) => Shape} */
  flag(x, y, watermark, r) {
    return shape(
      "g",
      { class: litClass("flag", this.hasChanged("high watermark", r)) },
      shape("line", { x1: x, y1: y - 12, x2: x, y2: y + CELL_HEIGHT + 5 }),
      shape("text", { x: x + 5, y: y - 6 }, `HW ${watermark}`),
      shape("title", {}, `${r} knows that all before offset ${watermark} is committed`),
    );
  }

  /** @type {(r: string, seen: { [follower: string]: Plain }, y: number) => Shape[]} */
  seenMarks(r, seen, y) {
    /** @type {Map<number, string[]>} */
    const at = new Map();
    for (const [follower, end] of Object.entries(seen)) {
      if (follower === r || !/^\d+$/.test(String(end))) continue;
      at.set(Number(end), [...(at.get(Number(end)) ?? []), follower]);
    }
    const marks = [...at].sort((a, b) => a[0] - b[0]);
    return marks.map(([end, followers], k) => {
      const x = this.x(end) - 3;
      const lit = followers.some((f) => this.touchedPaths.has(`${this.table.seen}[${r}][${f}]`));
      const last = k === marks.length - 1 ? ` seen at ${end}` : "";
      return shape(
        "g",
        { class: litClass("seen", lit) },
        shape("path", { d: `M${x} ${y + 4} l4 7 h-8 z` }),
        shape("text", { x: x + 8, y: y + 13 }, `${followers.join(", ")}${last}`),
        shape("title", {}, `the leader has seen ${followers.join(", ")} at offset ${end}`),
      );
    });
  }

  /**
   * What the leader can count on, with its numbers; not what it made of it, which differs between designs.
   * @type {(r: string) => Shape | null}
   */
  formula(r) {
    const own = this.roles.of("own isr", r);
    const seen = this.roles.seenEnds?.[r];
    if (!Array.isArray(own) || !own.length || !isObject(seen)) return null;
    const pending = this.roles.of("pending isr", r);
    const group = [...new Set([...own, ...(Array.isArray(pending) ? pending : [])].map(String))].sort();
    const ends = group.map((m) => (m === r ? this.roles.log(r).length : /^\d+$/.test(seen[m]) ? Number(seen[m]) : 0));
    const lit = this.hasChanged("own isr", r) || this.hasChanged("pending isr", r);
    const least = Math.min(...ends);
    const whose = `${Array.isArray(pending) && pending.length ? "maximal ISR" : "ISR"} ${inBraces(group)}`;
    const wordings = [`${whose}: min LEO = min(${ends.join(", ")}) = ${least}`, `${whose}: min LEO = ${least}`];
    const said = wordings.find((words) => words.length * 7.4 < this.card - this.logX) ?? `min LEO = ${least}`;
    return shape("tspan", { class: litClass("rule", lit) }, said);
  }

  // beside and below the replicas

  /** The truly committed sequence, on the same axis, and what clients were told. */
  clients() {
    const { roles, y } = this;
    if (!roles.has("committed") && !roles.has("acked")) return null;
    const committed = roles.many("committed");
    const logY = y + (this.narrow ? 40 : 14);
    const was = this.before?.many("committed") ?? [];
    const lit = this.hasChanged("committed");
    const parts = [label(16, y + (this.narrow ? 28 : 37), "t-name", "Committed")];
    parts.push(
      ...this.places(logY, committed.length, (o) =>
        committed[o] === undefined
          ? this.hole("", o, logY)
          : this.cell(committed[o], o, logY, "committed", lit && was[o] !== committed[o]),
      ),
    );
    const told = roles.has("acked") ? [`acknowledged ${inBraces(roles.many("acked"))}`] : [];
    if (roles.has("consumed")) told.push(`read [${roles.many("consumed").join(" ")}]`);
    const line = told.join("  ·  ");
    const beside = this.end + line.length * 6.2 < this.card; // else it has a line of its own
    const [x, lineY] = beside ? [this.end, logY + 23] : [this.logX, logY + CELL_HEIGHT + 18];
    parts.push(label(x, lineY, litClass("t-small", this.hasChanged("acked") || this.hasChanged("consumed")), line));
    const height = logY + CELL_HEIGHT + 14 + (beside ? 0 : 20) - y;
    this.y += height;
    return shape("g", {}, this.box(y, height, "card-box outer"), parts);
  }

  /** Messages under way as arrows in a margin of their own, each kind and replica always in the same column. */
  wires() {
    return shape(
      "g",
      { class: "wires" },
      this.messages.map((m) => this.wire(m)),
    );
  }

  /** @type {(m: Message) => Shape | null} */
  wire(m) {
    const kinds = this.table.mail.map((mail) => mail.variable);
    const { replicas } = this.roles;
    const count = replicas.length * kinds.length;
    const step = Math.min(26, (this.gutter - 44) / Math.max(1, count - 1));
    const slot = kinds.indexOf(m.kind) * replicas.length + replicas.indexOf(m.key);
    const [from, to] = m.asks ? [m.key, m.other] : [m.other, m.key];
    const [start, end] = [this.middle.get(from), this.middle.get(to)];
    if (start === undefined || end === undefined || start === end) return null;
    const off = slot * 3 - count;
    const [a, b] = [start + off, end + off];
    const x = this.card + 26 + slot * step;
    const turn = b > a ? 8 : -8;
    const edge = this.card;
    const bend = `Q${x} ${a} ${x} ${a + turn} V${b - turn} Q${x} ${b} ${x - 8} ${b} H${edge + 7}`;
    const kind = `wire ${m.kind}${m.asks ? "" : " answer"}`;
    return shape(
      "g",
      { class: litClass(kind, this.touchedPaths.has(`${m.kind}[${m.key}]`)) },
      shape("path", { d: `M${edge} ${a} H${x - 8} ${bend}` }),
      shape("path", { class: "head", d: `M${edge + 2} ${b} l8 -4.5 v9 z` }),
      shape("circle", { class: "tail", cx: edge + 2, cy: a, r: 3 }),
      shape("title", {}, `${from} to ${to}: ${m.text}, ${m.said.join(", ")}`),
    );
  }
}

/** @type {(x: number, y: number) => Shape} */
const outline = (x, y) => shape("rect", { x: x + 2.5, y: y + 0.5, width: CELL - 9, height: CELL_HEIGHT - 1, rx: 6 });

/** @type {(x: number, y: number, kind: string, words: string) => Shape} */
const cellText = (x, y, kind, words) =>
  shape("text", { x: x + CELL / 2 - 2, y, "text-anchor": "middle", class: kind }, words);

/**
 * Stripes that leave little of a cell's colour, and fine ones that leave most of it.
 * @type {(id: string) => Shape}
 */
function patterns(id) {
  const size = { width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
  const stripes = ["", "-fine"].map((kind) => {
    const line = shape("line", { x1: 0, y1: 0, x2: 0, y2: 6, class: `hatch-line${kind ? " fine" : ""}` });
    return shape("pattern", { id: id + kind, ...size }, line);
  });
  return shape("defs", {}, stripes);
}

/**
 * The scene of a state among those of a trace, whose longest log sets the width for all.
 * @type {(table: RoleTable, states: Values[], at: number, changes: Change[], width: number) => Shape | null}
 */
function sceneAmong(table, states, at, changes, width) {
  const cells = Math.max(1, ...states.map((values) => new Roles(table, values).longest()));
  return new Scene(table, states[at], { before: at ? states[at - 1] : null, changes, cells, width }).draw();
}
