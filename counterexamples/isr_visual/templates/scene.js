// The scene: one state of a replicated log. Every replica keeps its place; what the last step changed is ringed.
//
// Three different marks: the replica's own watermark (a flag above its cells), what the leader has seen of a
// follower (a tick below the leader's cells), and the truly committed sequence (a row of its own, below). Records are
// appended here, copied to another log, or committed, the safer the fuller; acknowledged and read are marks on them.
// isr_visual/picture.py draws the same for the command line, and a test compares the two.

const CELL = 58, CELL_HEIGHT = 38;

/** Which cells of which variables a list of changes touches: `log[r1]`, `acked`. */
function touched(changes) {
  const found = new Set();
  for (const { path } of changes || []) {
    found.add(path).add(path.split(/[[.]/)[0]);
    const first = /^\w+\[[^\]]*\]/.exec(path);
    if (first) found.add(first[0]);
  }
  return found;
}

class Scene {
  constructor(about, values, { changes = [], before = null, width = 760, cells = 1, small = false } = {}) {
    this.about = about;
    this.roles = new Roles(about, values);
    this.before = before ? new Roles(about, before) : null;
    this.touched = touched(changes);
    this.narrow = width < 560;
    this.small = small;
    this.width = Math.round(Math.min(Math.max(width, 330), 860));
    this.messages = this.roles.messages();
    this.gutter = this.narrow || !about.roles.mail.some((m) => m.variable in values) ? 0 : 112;
    this.left = this.narrow ? 16 : 182;
    this.shown(cells);
    this.y = 0;
    this.hatch = `hatch-${(Scene.drawn = (Scene.drawn || 0) + 1)}`;  // one of its own: a hidden picture lends nothing
  }

  /** Which offsets there is room for: all, or the last ones, with one place for those before. */
  shown(longest) {
    const fits = Math.max(2, Math.floor((this.cardWidth - this.left - 62) / CELL));
    const end = Math.max(0, ...this.roles.replicas.map((r) => this.roles.log(r).length), this.roles.many("committed").length);
    this.room = Math.min(Math.max(longest, end), fits);
    this.first = end > this.room ? end - this.room + 1 : 0;
  }

  /** Where the cell of an offset begins; of one that is not shown, where those before are. */
  x(offset) { return this.left + (this.first ? Math.max(0, offset - this.first + 1) : offset) * CELL; }

  get end() { return this.left + this.room * CELL + 10; }

  /** A place for each offset that is shown, made by `draw`, and one for all before. */
  places(y, count, draw) {
    const offsets = Array.from({ length: this.room - (this.first ? 1 : 0) }, (_, k) => this.first + k);
    return [this.first && count ? this.earlier(Math.min(this.first, count), y) : null, ...offsets.map(draw)];
  }

  earlier(count, y) {
    return s("g", { class: "cell hole before" }, s("rect", { x: this.left + 2.5, y: y + 0.5, width: CELL - 9, height: CELL_HEIGHT - 1, rx: 6 }),
      s("text", { x: this.left + CELL / 2 - 2, y: y + 22, "text-anchor": "middle", class: "t-epoch" }, `${count} before`), s("title", {}, `${count} earlier, for which there is no room`));
  }

  changed(role, replica) {
    const name = this.roles.names[role] ?? role;
    return this.touched.has(replica === undefined ? name : `${name}[${replica}]`);
  }

  /** The picture as an SVG element, null for a state without logs. */
  draw(label) {
    if (!this.roles.replicas.length) return null;
    const parts = [this.controller()];
    this.middle = new Map();
    for (const r of this.roles.replicas) parts.push(this.replica(r));
    parts.push(this.clients());
    if (this.gutter) parts.push(this.wires());
    const height = this.y;
    return s("svg", { class: "scene", viewBox: `0 0 ${this.width} ${height}`, width: this.width, height, role: "img", "aria-label": label || this.inWords() },
      patterns(this.hatch), parts);
  }

  /** The state in a sentence per replica, for those who do not see it. */
  inWords() {
    const rows = this.roles.replicas.map((r) => {
      const what = this.roles.down(r) ? "is down" : this.roles.leads(r) ? "leads" : "follows";
      return `${r} ${what}, log [${this.roles.log(r).join(" ")}], watermark ${this.roles.watermark(r) ?? "unknown"}`;
    });
    return [...rows, `in sync {${this.roles.many("isr").join(", ")}}`].join("; ");
  }

  get cardWidth() { return this.width - this.gutter; }

  controller() {
    if (!this.roles.has("leader") && !this.roles.has("isr")) return null;
    const y = this.y, height = this.narrow && this.roles.has("isr") ? 72 : 46;
    this.y += height + 12;
    this.controllerY = y + height / 2;
    const leader = this.roles.found.leader, lines = [];
    const facts = [leader === undefined ? null : leader === "none" ? "no leader" : `leader ${leader}`,
      this.roles.has("controller epoch") ? `epoch ${this.roles.found["controller epoch"]}` : null].filter(Boolean);
    const lit = this.changed("leader") || this.changed("controller epoch");
    lines.push(s("text", { x: 16, y: y + 28, class: "t-name" }, "Controller"));
    lines.push(s("text", { x: 112, y: y + 28, class: `t-fact${lit ? " lit" : ""}` }, facts.join("  ·  ")));
    const chipsX = this.narrow ? 52 : 306, chipsY = this.narrow ? y + 40 : y + 12;
    if (this.roles.has("isr")) lines.push(s("text", { x: chipsX - 34, y: chipsY + 15, class: "t-small" }, "ISR"));
    if (this.roles.has("isr")) this.roles.replicas.forEach((r, i) => lines.push(this.chip(r, chipsX + i * 66, chipsY)));
    const elr = this.roles.many("elr");
    if (elr.length) lines.push(s("text", { x: chipsX + this.roles.replicas.length * 66 + 4, y: chipsY + 15, class: "t-small" }, `ELR {${elr.join(", ")}}`));
    return s("g", {}, s("rect", { x: 0.5, y: y + 0.5, width: this.cardWidth - 1, height: height - 1, rx: 10, class: "card-box outer" }), lines);
  }

  /** Membership: filled in sync, dashed eligible, struck through fenced. */
  chip(r, x, y) {
    const inside = this.roles.many("isr").includes(r), eligible = this.roles.many("elr").includes(r);
    const fenced = this.roles.many("fenced").includes(r), lit = this.changed("isr") && this.before && this.before.many("isr").includes(r) !== inside;
    const kind = inside ? "in" : eligible ? "eligible" : "out";
    return s("g", { class: `chip ${kind}${lit ? " lit" : ""}` },
      s("rect", { x, y, width: 58, height: 22, rx: 11 }),
      s("text", { x: x + 29, y: y + 15, "text-anchor": "middle", "text-decoration": fenced ? "line-through" : null }, r),
      s("title", {}, `${r} is ${inside ? "in the ISR" : eligible ? "in the ELR" : "not in the ISR"}${fenced ? ", and fenced" : ""}`));
  }

  replica(r) {
    const y = this.y, leads = this.roles.leads(r), down = this.roles.down(r), { left } = this;
    const logY = this.narrow ? y + 70 : y + 38, own = this.messages.filter((m) => m.key === r);
    const parts = [this.head(r, y, leads, down)];
    parts.push(...this.log(r, logY));
    let below = logY + CELL_HEIGHT + 8;
    const seen = leads && this.roles.seen ? this.roles.seen[r] : null;
    if (seen) { parts.push(...this.seenMarks(r, seen, logY + CELL_HEIGHT)); below += 18; }
    const formula = leads ? this.formula(r) : null, lines = formula ? [formula] : [];
    for (const m of own) {
      const arrow = m.asks ? `${m.text} → ${m.other}` : `${m.other || "?"} → ${r}: ${m.text}`;
      const said = m.said.slice(0, this.narrow ? 3 : 5).join(", ");
      lines.push(s("tspan", { class: `mail ${m.kind}${this.touched.has(`${m.kind}[${r}]`) ? " lit" : ""}` }, arrow, s("tspan", { class: "quiet" }, `  ${said}`)));
    }
    for (const line of lines) {
      below += 8;
      parts.push(s("text", { x: left, y: below + 4, class: "t-small" }, line));
      below += 12;
    }
    const height = below - y + 8;
    this.middle.set(r, logY + CELL_HEIGHT / 2);
    this.y += height + 12;
    const box = `card-box${leads ? " leads" : ""}${down ? " down" : ""}`;
    return s("g", { class: `replica${down ? " down" : ""}` },
      s("rect", { x: 0.5, y: y + 0.5, width: this.cardWidth - 1, height: height - 1, rx: 10, class: box }), parts);
  }

  head(r, y, leads, down) {
    const deposed = leads && this.roles.has("leader") && !this.roles.elected(r);
    const what = down ? "down" : deposed ? "thinks it leads" : leads ? "leader" : "follower";
    const epoch = this.roles.of("epoch", r), member = this.roles.many("isr").includes(r);
    const lit = ["follows", "epoch"].some((role) => this.changed(role, r)) || (this.changed("alive") && this.before && this.before.down(r) !== down);
    const badge = s("g", { class: `badge ${down ? "down" : leads ? "leads" : "follows"}${deposed ? " deposed" : ""}` },
      s("rect", { x: 48, y: y + 13, width: what.length * 6.4 + 18, height: 20, rx: 10 }),
      s("text", { x: 48 + (what.length * 6.4 + 18) / 2, y: y + 27, "text-anchor": "middle" }, what));
    const facts = [epoch === undefined || down ? null : `epoch ${epoch}`, member ? "in sync" : this.roles.has("isr") ? "not in sync" : null];
    const at = this.narrow ? { x: 66 + what.length * 6.4 + 12, y: y + 28 } : { x: 16, y: y + 54 };
    return [s("text", { x: 16, y: y + 28, class: `t-name${lit ? " lit" : ""}` }, r), badge,
      s("text", { ...at, class: "t-small" }, facts.filter(Boolean).join("  ·  "))];
  }

  log(r, y) {
    const log = this.roles.log(r), watermark = this.roles.watermark(r);
    const old = this.before ? this.before.log(r) || [] : [], lit = this.changed("log", r);
    const parts = this.places(y, log.length, (o) => (log[o] === undefined ? this.hole(r, o, y, lit ? old[o] : undefined)
      : this.cell(log[o], o, y, this.standing(r, o, watermark), lit && old[o] !== log[o])));
    if (watermark !== null) parts.push(this.flag(this.x(watermark) - 3, y, watermark, this.changed("high watermark", r), r));
    parts.push(s("text", { x: this.end, y: y + 23, class: `t-small${lit ? " lit" : ""}` }, `LEO ${log.length}`));
    return parts;
  }

  /** How safe a record is, as far as its replica knows. */
  standing(r, o, watermark) {
    if (watermark !== null && o < watermark) return "committed";
    return this.roles.replicas.some((other) => other !== r && this.roles.log(other)[o] === this.roles.log(r)[o]) ? "copied" : "appended";
  }

  cell(record, o, y, standing, lit) {
    const epoch = this.roles.epochOf(record), acked = this.roles.many("acked").includes(record), read = this.roles.many("consumed").includes(record);
    const tone = `e${(Number(epoch ?? 0) || 0) % 6}`, x = this.x(o);
    const known = { committed: "known here to be committed", copied: "copied to another log, not known here to be committed", appended: "in this log only" }[standing];
    const about = [`record ${record}`, epoch === undefined ? "" : `written in epoch ${epoch}`, known,
      acked ? "acknowledged to its producer" : "", read ? "read by a consumer" : ""].filter(Boolean).join(", ");
    const hatch = standing === "committed" ? null : `url(#${this.hatch}${standing === "copied" ? "-fine" : ""})`;
    return s("g", { class: `cell ${tone} ${standing}${lit ? " lit" : ""}` },
      s("rect", { x: x + 2, y, width: CELL - 8, height: CELL_HEIGHT, rx: 6, class: "fill" }),
      hatch ? s("rect", { x: x + 3, y: y + 1, width: CELL - 10, height: CELL_HEIGHT - 2, rx: 5, class: "hatch", fill: hatch }) : null,
      lit ? s("rect", { x: x - 1, y: y - 3, width: CELL - 2, height: CELL_HEIGHT + 6, rx: 8, class: "ring" }) : null,
      s("text", { x: x + CELL / 2 - 2, y: y + (epoch === undefined ? 24 : 17), "text-anchor": "middle", class: "t-record" }, record),
      epoch === undefined ? null : s("text", { x: x + CELL / 2 - 2, y: y + 31, "text-anchor": "middle", class: "t-epoch" }, `epoch ${epoch}`.slice(0, 8)),
      acked ? s("path", { d: `M${x + CELL - 17} ${y + 7} l3 3 l5 -6`, class: "tick" }) : null,
      read ? s("path", { d: `M${x + 6} ${y + 9} q6 -7 12 0 q-6 7 -12 0 z m4.5 0 a1.5 1.5 0 1 0 3 0 a1.5 1.5 0 1 0 -3 0`, class: "read" }) : null,
      s("title", {}, about));
  }

  /** What should be at an offset: the committed record, else an acknowledged one that some log has there. */
  expected(o) {
    const committed = this.roles.many("committed")[o];
    if (committed !== undefined) return committed;
    const acked = this.roles.many("acked");
    return this.roles.replicas.map((r) => this.roles.log(r)[o]).find((record) => record !== undefined && acked.includes(record));
  }

  /** An offset that holds nothing: outlined red where the leader lacks an acknowledged or committed record. */
  hole(r, o, y, cut) {
    const missing = this.expected(o), x = this.x(o);
    const gone = missing !== undefined && (this.roles.elected(r) || this.roles.leads(r));
    const text = cut !== undefined ? `${cut} cut` : gone ? `no ${missing}` : "";
    return s("g", { class: `cell hole${gone ? " gone" : ""}${cut !== undefined ? " cut" : ""}` },
      s("rect", { x: x + 2.5, y: y + 0.5, width: CELL - 9, height: CELL_HEIGHT - 1, rx: 6 }),
      text ? s("text", { x: x + CELL / 2 - 2, y: y + 22, "text-anchor": "middle", class: "t-epoch" }, text) : null,
      gone ? s("title", {}, `record ${missing} was promised, and is not here`) : null);
  }

  flag(x, y, watermark, lit, r) {
    return s("g", { class: `flag${lit ? " lit" : ""}` },
      s("line", { x1: x, y1: y - 12, x2: x, y2: y + CELL_HEIGHT + 5 }),
      s("text", { x: x + 5, y: y - 6 }, `HW ${watermark}`),
      s("title", {}, `${r} knows that all before offset ${watermark} is committed`));
  }

  seenMarks(r, seen, y) {
    const at = new Map();
    for (const [f, end] of Object.entries(seen)) if (f !== r && /^\d+$/.test(end)) at.set(end, [...(at.get(end) || []), f]);
    const marks = [...at].sort((a, b) => a[0] - b[0]);
    return marks.map(([end, followers], k) => {
      const x = this.x(Number(end)) - 3, lit = followers.some((f) => this.touched.has(`${this.about.roles.seen}[${r}][${f}]`));
      return s("g", { class: `seen${lit ? " lit" : ""}` }, s("path", { d: `M${x} ${y + 4} l4 7 h-8 z` }),
        s("text", { x: x + 8, y: y + 13 }, `${followers.join(", ")}${k === marks.length - 1 ? ` seen at ${end}` : ""}`), s("title", {}, `the leader has seen ${followers.join(", ")} at offset ${end}`));
    });
  }
}
