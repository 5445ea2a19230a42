// The parts of a state that mean something to the picture, found by the names and shapes of its variables.

/** The parts of one state, by role. */
class Roles {
  /**
   * @param {RoleTable} table
   * @param {Values} values
   */
  constructor(table, values) {
    this.table = table;
    this.values = values;
    /** @type {{ [role: string]: Plain }} */
    this.parts = {};
    /** @type {{ [role: string]: string }} */
    this.names = {};
    for (const [role, [shape, names]] of Object.entries(table.scene)) {
      const name = names.find((n) => n in values && fits(shape, plainOf(values[n])));
      if (name === undefined) continue;
      this.parts[role] = plainOf(values[name]);
      this.names[role] = name;
    }
    const logs = this.parts.log;
    const drawable = isObject(logs) && Object.values(logs).length > 0 && Object.values(logs).every(Array.isArray);
    this.replicas = drawable ? Object.keys(logs) : [];
    const seen = table.seen in values ? plainOf(values[table.seen]) : null;
    /** What each leader knows of each follower's log end. */
    this.seenEnds = isObject(seen) ? seen : null;
  }

  /** @type {(role: string, replica: string) => Plain | undefined} */
  of(role, replica) {
    const each = this.parts[role];
    return isObject(each) ? each[replica] : undefined;
  }

  /** @type {(role: string) => string[]} */
  many(role) {
    const value = this.parts[role];
    return Array.isArray(value) ? value.filter((x) => typeof x === "string") : [];
  }

  /** @type {(role: string) => boolean} */
  has(role) {
    return role in this.parts;
  }

  /** @type {(r: string) => string[]} */
  log(r) {
    const log = this.of("log", r);
    return Array.isArray(log) ? log.map(String) : [];
  }

  /** @type {(r: string) => boolean} */
  down(r) {
    return this.has("alive") && !this.many("alive").includes(r);
  }

  /**
   * By its own account where that is known (a deposed leader still acts), else by the controller's.
   * @type {(r: string) => boolean}
   */
  leads(r) {
    const role = this.of("role", r);
    if (typeof role === "string") return !this.down(r) && role === "leader";
    const leader = this.of("follows", r) ?? this.parts.leader;
    return !this.down(r) && (leader === undefined ? this.many("leaders").includes(r) : leader === r);
  }

  /**
   * What it is: down, or what it takes itself for.
   * @type {(r: string) => string}
   */
  stateOf(r) {
    const role = this.of("role", r);
    if (this.down(r)) return "down";
    return typeof role === "string" ? role : this.leads(r) ? "leader" : "follower";
  }

  /** @type {(r: string) => string} */
  stateInWords(r) {
    const state = this.stateOf(r);
    return { leader: "leads", follower: "follows" }[state] ?? `is ${state}`;
  }

  /** @type {(r: string) => boolean} */
  elected(r) {
    return this.parts.leader === r;
  }

  /** @type {(record: string) => string | undefined} */
  epochOf(record) {
    return this.many("written in")[Number(record)];
  }

  /** @type {(r: string) => number | null} */
  watermark(r) {
    const w = Number(this.of("high watermark", r));
    return Number.isInteger(w) ? w : null;
  }

  /** The longest log, or the committed sequence if that is longer. */
  longest() {
    return Math.max(0, ...this.replicas.map((r) => this.log(r).length), this.many("committed").length);
  }

  /** Whether whoever was elected acts as leader of that epoch already; until then it can still be replaced. */
  acting() {
    const elected = this.parts.leader;
    if (typeof elected !== "string" || !this.replicas.includes(elected)) return false;
    const own = this.of("epoch", elected);
    const epoch = this.parts["controller epoch"];
    return this.leads(elected) && (own === undefined || epoch === undefined || own === epoch);
  }

  /**
   * In words: what was acknowledged or committed, and is where nobody can serve it (as isr_trace.scene says it).
   * @returns {string[]}
   */
  losses() {
    const acked = this.many("acked");
    const nobody = this.has("isr") ? "no replica" : "nobody";
    const leader = String(this.parts.leader);
    const lines = [];
    for (const record of new Set([...acked, ...this.many("committed")])) {
      const was = `record ${record} was ${acked.includes(record) ? "acknowledged" : "committed"}`;
      const holders = this.replicas.filter((r) => this.log(r).includes(record));
      if (!holders.length) lines.push(`${this.acting() ? "LOST" : "AT RISK"}: ${was}, and ${nobody} has it`);
      else if (this.replicas.includes(leader) && !holders.includes(leader))
        lines.push(
          this.acting()
            ? `LOST: ${was}, and the leader ${leader} does not have it`
            : `AT RISK: ${was}, and ${leader}, which was elected, does not have it`,
        );
      else if (holders.every((r) => this.down(r)))
        lines.push(`UNAVAILABLE: ${was}, and only ${holders.join(", ")} has it, which is down`);
    }
    return this.replicas.length ? lines : [];
  }

  /**
   * The messages that exist: whose, from whom, to whom, and what they say.
   * @returns {Message[]}
   */
  messages() {
    return this.table.mail.flatMap((mail) => {
      const status = mail.variable in this.values ? plainOf(this.values[mail.variable]) : null;
      return isObject(status) ? this.replicas.flatMap((key) => this.message(mail, key, String(status[key]))) : [];
    });
  }

  /** @type {(mail: Mail, key: string, status: string) => Message[]} */
  message(mail, key, status) {
    const asks = mail.questions[status];
    const answers = mail.answers[status];
    if (!asks && !answers) return [];
    const asked = mail.to in this.values;
    const other = asks ? (this.field(mail.to, key) ?? mail.to) : asked ? (this.of("follows", key) ?? "") : mail.to;
    const said = Object.entries(mail.fields[status] ?? {}).flatMap(([label, name]) => {
      const value = this.field(name, key);
      if (value === undefined || value === "none") return [];
      return [`${label} ${Array.isArray(value) ? `{${value.join(", ")}}` : value}`];
    });
    return [{ kind: mail.variable, key, asks: Boolean(asks), other: String(other), text: asks || answers, said }];
  }

  /** @type {(name: string, key: string) => Plain | undefined} */
  field(name, key) {
    const whole = name in this.values ? plainOf(this.values[name]) : null;
    return isObject(whole) ? whole[key] : undefined;
  }
}

/**
 * Whether a value has the shape of a role: one for each replica, many, or one.
 * @type {(shape: string, value: Plain) => boolean}
 */
const fits = (shape, value) =>
  shape === "each" ? isObject(value) : shape === "many" ? Array.isArray(value) : typeof value === "string";
