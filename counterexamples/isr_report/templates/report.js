// The report: which promise the squares show, what is behind a square, copying a command, filtering cards by a word.

(() => {
  /** @typedef {{ name: string, verdict: string, depth: number, trace: string | null, page: string | null }} Promised */
  /**
   * @typedef {{ name: string, design: string, settings: { [name: string]: string }, fault: string, distinct: number,
   *   complete: boolean, run: string, command: string, promises: Promised[] }} Cell
   */

  /** @type {(id: string) => HTMLElement} */
  const byId = (id) => {
    const node = document.getElementById(id);
    if (!node) throw new Error(`the page has no ${id}`);
    return node;
  };
  /**
   * @type {{ cells: Cell[], promises: { [name: string]: string }, faults: { [name: string]: string },
   *   kinds: { [verdict: string]: string } }}
   */
  const data = JSON.parse(byId("data").textContent ?? "");
  const detail = /** @type {HTMLDialogElement} */ (byId("detail"));
  /** @type {{ [kind: string]: string }} */
  const SIGNS = { holds: "✓", none: "·", vacuous: "∅" };

  /**
   * @template {keyof HTMLElementTagNameMap} K
   * @param {K} tag
   * @param {string} [kind]
   * @param {string} [text]
   */
  const make = (tag, kind, text) => {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  /** @type {(verdict: string) => string} */
  const kindOf = (verdict) => data.kinds[verdict] ?? "open";

  /** @type {(href: string, text: string) => HTMLAnchorElement} */
  const linkTo = (href, text) => {
    const made = make("a", "", text);
    made.href = href.split("/").map(encodeURIComponent).join("/");
    return made;
  };

  /** @type {NodeListOf<HTMLElement>} */
  const squares = document.querySelectorAll(".square");
  /** @type {NodeListOf<HTMLButtonElement>} */
  const buttons = document.querySelectorAll("button.promise");

  /** @type {(square: HTMLElement) => Cell} */
  const cellOf = (square) => data.cells[Number(square.dataset.i)];

  /** @type {(promise: string) => void} */
  const show = (promise) => {
    for (const square of squares) {
      const cell = cellOf(square);
      const found = cell.promises.find((p) => p.name === promise);
      const kind = found ? kindOf(found.verdict) : "none";
      square.className = `square ${kind}`;
      square.textContent = kind === "violated" ? String(found?.depth) : (SIGNS[kind] ?? "?");
      square.setAttribute("aria-label", `${cell.name}: ${found ? found.verdict : "not promised"}`);
    }
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.value === promise));
    byId("promise-says").textContent = data.promises[promise];
  };

  /** @type {(promise: Promised) => HTMLElement} */
  const lineOf = (promise) => {
    const line = make("li");
    line.append(make("span", `verdict ${kindOf(promise.verdict)}`, promise.verdict), make("code", "", promise.name));
    if (promise.page) line.append(linkTo(promise.page, `walk through its ${promise.depth} steps`));
    else if (promise.trace) line.append(linkTo(promise.trace, `the trace, ${promise.depth} steps`));
    return line;
  };

  /** @type {(cell: Cell) => void} */
  const explain = (cell) => {
    const settings = Object.entries(cell.settings).map(([name, value]) => `${name.replaceAll("_", "-")} ${value}`);
    const title = make("h2", "", `${cell.design}, ${settings.join(", ")}`);
    title.id = "detail-title";
    const list = make("ul", "verdicts");
    list.append(...cell.promises.map(lineOf));
    const command = make("div", "command");
    const copy = make("button", "copy", "Copy");
    copy.type = "button";
    command.append(make("code", "", cell.command), copy);
    const states = `${cell.distinct.toLocaleString("en")} states, ${cell.complete ? "all there are" : "not all there are"}`;
    detail
      .querySelector(".body")
      ?.replaceChildren(
        make("p", "eyebrow", data.faults[cell.fault]),
        title,
        make("p", "quiet", states),
        list,
        make("h3", "", "The same again"),
        command,
        linkTo(cell.run, "its run file"),
      );
    detail.showModal();
  };

  /** @type {(button: HTMLElement) => void} */
  const copied = (button) => {
    const text = button.parentElement?.querySelector("code")?.textContent ?? "";
    const done = () => {
      button.textContent = "Copied";
      setTimeout(() => {
        button.textContent = "Copy";
      }, 1500);
    };
    navigator.clipboard?.writeText(text).then(done, () => {});
  };

  /**
   * Shows the cards of a section that say the word, and how many they are.
   * @type {(field: HTMLInputElement) => void}
   */
  const filter = (field) => {
    const block = field.closest(".block");
    const word = field.value.trim().toLowerCase();
    const cards = block?.querySelectorAll(".cards > li") ?? [];
    let count = 0;
    for (const card of cards) {
      const says = (card.textContent ?? "").toLowerCase().includes(word);
      card.toggleAttribute("hidden", !says);
      count += Number(says);
    }
    const note = block?.querySelector(".filter-note");
    if (note) note.textContent = word ? `${count} of ${cards.length}` : "";
  };

  document.addEventListener("input", (event) => {
    const field = event.target;
    if (field instanceof HTMLInputElement && field.matches(".filter")) filter(field);
  });

  document.addEventListener("click", (event) => {
    const { target } = event;
    if (!(target instanceof Element)) return;
    /** @type {HTMLElement | null} */
    const square = target.closest(".square");
    /** @type {HTMLButtonElement | null} */
    const promise = target.closest("button.promise");
    /** @type {HTMLElement | null} */
    const copy = target.closest(".copy");
    if (square) {
      event.preventDefault();
      explain(cellOf(square));
    } else if (promise) show(promise.value);
    else if (copy) copied(copy);
    else if (target.closest(".close") || target === detail) detail.close();
  });
})();
