// What the reader holds: buttons, scrubber, search, keys.

class Controls {
  constructor(app) {
    this.app = app;
    const go = (icon, label, act, key) => button(s("svg", { viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true" }, s("path", { d: icon, class: "icon" })), { class: "nav", "aria-label": label, title: `${label} (${key})`, onclick: act });
    const { last } = app.trace;
    this.scrub = h("input", { type: "range", min: 0, max: last, step: 1, value: 0, "aria-label": "Step", oninput: () => { app.rush(); app.view.asked = Number(this.scrub.value); app.go(Number(this.scrub.value)); } });
    this.place = h("output", { class: "place" });
    this.bar = h("div", { class: "bar", role: "group", "aria-label": "Move" },
      go("M3 2h2v12H3z M14 2v12L6 8z", "First step", () => app.go(0), "Home"), go("M12 2v12L3 8z", "Step before", () => app.go(app.view.at - 1), "←"), go("M4 2v12l9-6z", "Next step", () => app.go(app.view.at + 1), "→"), go("M11 2h2v12h-2z M2 2v12l8-6z", "Last step", () => app.go(last), "End"),
      button("Next event", { class: "nav wide", title: "in-sync set, watermark, leader, acknowledgement, loss (e)", onclick: () => app.find(true, (i) => app.trace.eventful(i)) }), this.scrub, this.place);
    this.searching();
    this.all = h("input", { type: "checkbox", onchange: () => { app.view.allProperties = this.all.checked; app.draw(); } });
    this.ask = h("input", { type: "checkbox", onchange: () => { app.view.asking = this.ask.checked; app.view.asked = null; app.draw(); } });
    this.switches = [app.trace.about.properties.length ? h("label", {}, this.all, " All promises") : null, h("label", {}, this.ask, " Ask before revealing")];
    this.only = h("input", { type: "checkbox", onchange: () => { app.view.changedOnly = this.only.checked; app.draw(); } });
    this.filter = h("input", { type: "search", placeholder: "filter", "aria-label": "Filter variables", oninput: () => { app.view.filter = this.filter.value; app.draw(); } });
    this.tableTools = h("div", { class: "tools" }, h("label", {}, this.only, " Changed only"), this.filter);
    this.help = h("dialog", { class: "help", "aria-label": "Keys" }, h("h2", {}, "Keys"), h("dl", {}, KEYS.map(([key, does]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, does)])),
      button("Close", { class: "primary", onclick: () => this.help.close() }));
  }

  searching() {
    this.search = h("input", { type: "search", placeholder: `Search or watch: a word, or ${this.app.trace.drawable ? "acked - log[r1]" : `${this.app.trace.about.variables[0].name} != 0`}`, "aria-label": "Search text or predicate", spellcheck: "false" });
    this.note = h("span", { class: "note", role: "status" });
    this.form = h("form", { class: "search", onsubmit: (event) => { event.preventDefault(); this.next(); } }, this.search, button("Find", { onclick: () => this.next() }), button("Watch", { onclick: () => this.watch() }), this.note);
  }

  /** The next step, from the start again after the end, that says the text or of which the predicate holds. */
  next() {
    const { app } = this, text = this.search.value.trim();
    if (!text) return;
    const test = this.test(text), count = app.trace.last + 1;
    const found = Array.from({ length: count }, (_, k) => (app.view.at + 1 + k) % count).find(test);
    this.note.textContent = found === undefined ? `no step: ${text}` : `T${found}`;
    if (found !== undefined) { app.view.asked = found; app.go(found); }
  }

  test(text) {
    const { trace } = this.app;
    if (/[=<>]|\b(in|not|and|or)\b|\[/.test(text)) {
      try {
        const holds = watchExpression(text);
        return (i) => holds(trace.values(i), i ? trace.values(i - 1) : null) === true;
      } catch { /* then it is a text like any other */ }
    }
    const word = text.toLowerCase();
    return (i) => {
      const step = trace.step(i);
      const said = step ? [step.action, words(step.action), step.parameters, step.says, ...step.changes.map((c) => `${c.path} ${c.before} ${c.after}`), ...trace.about.lost[i]] : trace.about.lost[i];
      return said.join("\n").toLowerCase().includes(word);
    };
  }

  watch() {
    const text = this.search.value.trim();
    if (!text) return;
    try {
      watchExpression(text);
      this.note.textContent = "watched in the table";
      if (!this.app.view.watches.includes(text)) this.app.view.watches.push(text);
      this.app.draw();
    } catch (problem) {
      this.note.textContent = problem.message;
    }
  }

  update() {
    const { view, trace } = this.app;
    this.scrub.value = view.at;
    this.scrub.setAttribute("aria-valuetext", `T${view.at} of ${trace.last}`);
    this.place.textContent = `T${view.at} / ${trace.last}`;
    this.all.checked = view.allProperties;
    this.ask.checked = view.asking;
    this.only.checked = view.changedOnly;
  }
}

Object.assign(App.prototype, {
  key(event) {
    if (!this.trace || event.ctrlKey || event.metaKey || event.altKey) return;
    if (this.controls.help.open) return;
    const typing = event.target.matches?.("input, textarea, select"), range = event.target.type === "range";
    if (typing && !range && !(event.target.type === "checkbox" && event.key.length === 1 && event.key !== " ")) {
      if (event.key === "Escape") {
        event.preventDefault();  // which would empty a search field
        event.target.blur();
      }
      return;
    }
    const act = this.keys()[event.key];
    if (!act || (range && /^(Arrow|Home|End)/.test(event.key))) return;
    event.preventDefault();
    if (event.repeat) this.rush();
    act();
  },

  keys() {
    const { view, trace } = this, focus = (id) => () => { const node = document.getElementById(id); node?.focus({ preventScroll: true }); node?.scrollIntoView({ block: "nearest" }); };
    const next = () => this.go(view.at + 1), back = () => this.go(view.trail.length ? view.at : view.at - 1);
    const event = (forward) => () => this.find(forward, (i) => trace.eventful(i));
    return {
      ArrowRight: next, n: next, ArrowLeft: back, p: back, Home: () => this.go(0), End: () => this.go(trace.last), e: event(true), E: event(false),
      b: () => this.go(brokenAt(trace) ?? trace.last), u: () => this.controls.next(), 1: focus("scene"), 2: focus("lanes"), 3: focus("variables"), w: focus("whatif"),
      Escape: () => this.go(view.at), c: () => { view.changedOnly = !view.changedOnly; this.draw(); }, "/": () => this.controls.search.focus(),
      a: () => { view.asking = !view.asking; view.asked = null; this.draw(); this.say(view.asking ? "Asks before revealing." : "Reveals at once."); },
      s: () => this.saveScene(), i: () => this.saveItf(), l: () => this.copyLink(), t: () => this.turnTheme(), g: () => this.traces.length > 1 && this.openGallery(), "?": () => this.controls.help.showModal(),
    };
  },

  saveItf() { save(`${this.trace.about.name}.itf.json`, "application/json", this.trace.itfText); },

  saveScene() {
    const svg = this.scene.querySelector("svg.scene") || this.lanes.querySelector("svg");
    save(`${this.trace.about.name}-T${this.view.at}.svg`, "image/svg+xml", svgText(svg, getComputedStyle(document.getElementById("scene")).backgroundColor));
  },

  copyLink() {
    const link = location.href.split("#")[0] + this.link();
    const done = () => this.say("The link is copied.");
    navigator.clipboard ? navigator.clipboard.writeText(link).then(done, () => this.say(link)) : this.say(link);
    history.replaceState(null, "", this.link());
  },

  turnTheme() {
    const dark = (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    this.say(dark ? "Light." : "Dark.");
  },
});

/** The first step whose state breaks the property that the trace is about. */
function brokenAt(trace) {
  const p = trace.about.properties.find((x) => x.name === trace.about.property);
  const at = p ? p.holds.indexOf(p.kind.startsWith("sometimes")) : -1;
  return at >= 0 ? at : null;
}
