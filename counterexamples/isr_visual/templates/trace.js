// A trace with its neighbourhood: every state that the page can show, by step or by node.

class Trace {
  constructor(about, itfText) {
    this.about = about;
    this.itfText = itfText;
    this.itf = JSON.parse(itfText);
    this.states = this.itf.states;
    this.last = this.states.length - 1;
    this.intact = sha256(itfText) === about.digest;
    this.nodeOfStep = new Map();
    this.known = new Map();
    about.nodes.forEach((node, n) => { if (node.at !== null) this.nodeOfStep.set(JSON.stringify(this.values(node.at)), n); });
    this.drawable = new Roles(about, this.values(0)).replicas.length > 0;
    this.otherValues = this.unrolled(about.against);
  }

  values(step) {
    const { "#meta": _, ...values } = this.states[step];
    return values;
  }

  /** The states of the other design, each turn holding only what changed in it. */
  unrolled(against) {
    const found = [];
    for (const turn of against ? against.turns : []) found.push({ ...found[found.length - 1], ...turn.values });
    return found;
  }

  nodeAt(step) {
    return this.nodeOfStep.get(JSON.stringify(this.values(step))) ?? null;
  }

  nodeValues(n) {
    if (!this.known.has(n)) {
      const node = this.about.nodes[n];
      this.known.set(n, node.at !== null ? this.values(node.at) : { ...this.nodeValues(node.since), ...node.values });
    }
    return this.known.get(n);
  }

  /** The parts of a state of the trace, worked out once. */
  rolesAt(i) {
    this.parts ??= [];
    return (this.parts[i] ??= new Roles(this.about, this.values(i)));
  }

  step(i) {
    return i > 0 ? this.about.steps[i - 1] : null;
  }

  eventful(i) {
    return i > 0 && (!this.drawable || this.step(i).events.length > 0);
  }

  /** Name, and what it shows, for headings and the gallery. */
  get title() {
    const a = this.about;
    if (a.case) return a.case.title;
    if (!a.design) return `A trace of another program: ${a.name}`;
    return a.property ? `${a.property} on ${a.design}` : `A behaviour of ${a.design}`;
  }

  /** The first state from which something stays lost to the end. */
  get lostAt() {
    let at = null;
    this.about.lost.forEach((lines, i) => { at = lines.some((l) => l.startsWith("LOST")) ? at ?? i : null; });
    return at;
  }
}

/** The parts of a state that the scene is made of, by role. */
class Roles {
  constructor(about, values) {
    this.about = about;
    this.values = values;
    this.found = {};
    this.names = {};
    for (const [role, names] of Object.entries(about.roles.scene)) {
      const name = names.find((n) => n in values && this.fits(role, values[n]));
      if (name === undefined) continue;
      this.found[role] = plainOf(values[name]);
      this.names[role] = name;
    }
    const logs = this.found.log;
    const drawable = isObject(logs) && Object.values(logs).length > 0 && Object.values(logs).every(Array.isArray);
    this.replicas = drawable ? Object.keys(logs) : [];
    this.seen = about.roles.seen in values ? plainOf(values[about.roles.seen]) : null;
  }

  /** Whether the value has the shape of the role: one per replica, several, or one. */
  fits(role, value) {
    const plain = plainOf(value);
    const shape = { log: "each", "high watermark": "each", epoch: "each", follows: "each", "own isr": "each", "pending isr": "each",
      fetch: "each", alter: "each", leader: "one", "controller epoch": "one" }[role] || "many";
    return shape === "each" ? isObject(plain) : shape === "many" ? Array.isArray(plain) : typeof plain === "string";
  }

  of(role, replica) { return isObject(this.found[role]) ? this.found[role][replica] : undefined; }
  many(role) { return Array.isArray(this.found[role]) ? this.found[role] : []; }
  has(role) { return role in this.found; }
  log(r) { return this.found.log[r]; }
  down(r) { return this.has("alive") && !this.many("alive").includes(r); }
  leads(r) { return !this.down(r) && (this.of("follows", r) ?? this.found.leader) === r; }
  elected(r) { return this.found.leader === r; }
  epochOf(record) { return this.many("written in")[Number(record)]; }
  watermark(r) { const w = Number(this.of("high watermark", r)); return Number.isInteger(w) ? w : null; }

  /** In words: what was acknowledged or committed, and is where nobody can serve it (as isr_trace.scene says it). */
  lost() {
    const acked = this.many("acked"), leader = this.found.leader, lines = [];
    for (const record of new Set([...acked, ...this.many("committed")])) {
      const was = `record ${record} was ${acked.includes(record) ? "acknowledged" : "committed"}`;
      const holders = this.replicas.filter((r) => this.log(r).includes(record));
      if (!holders.length) lines.push(`LOST: ${was}, and no replica has it`);
      else if (this.replicas.includes(leader) && !holders.includes(leader)) lines.push(`LOST: ${was}, and the leader ${leader} does not have it`);
      else if (holders.every((r) => this.down(r))) lines.push(`UNAVAILABLE: ${was}, and only ${holders.join(", ")} has it, which is down`);
    }
    return this.replicas.length ? lines : [];
  }

  /** The messages that exist: whose, from whom, to whom, and what they say. */
  messages() {
    const found = [];
    for (const mail of this.about.roles.mail) {
      const status = mail.variable in this.values ? plainOf(this.values[mail.variable]) : null;
      if (!isObject(status)) continue;
      const field = (name, key) => { const v = name in this.values ? plainOf(this.values[name]) : null; return isObject(v) ? v[key] : undefined; };
      for (const key of this.replicas) {
        const asks = mail.questions[status[key]], answers = mail.answers[status[key]];
        if (!asks && !answers) continue;
        const to = field(mail.to, key) ?? mail.to;
        const other = asks ? to : mail.to in this.values ? this.of("follows", key) ?? "" : mail.to;
        const said = Object.entries(mail.fields[status[key]] || {}).map(([label, name]) => [label, field(name, key)]).filter(([, v]) => v !== undefined && v !== "none");
        found.push({ kind: mail.variable, key, asks: Boolean(asks), other, text: asks || answers,
          said: said.map(([label, v]) => `${label} ${Array.isArray(v) ? `{${v.join(", ")}}` : v}`) });
      }
    }
    return found;
  }
}
