const data = JSON.parse(document.getElementById("data").textContent);
const detail = document.getElementById("detail");
const make = (tag, kind, text) => {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  return made;
};
const kindOf = (verdict) =>
  data.holds.includes(verdict) ? "holds" : ({ VIOLATED: "violated", VACUOUS: "vacuous" }[verdict] ?? "open");
const linkTo = (href, text) => {
  const made = make("a", "", text);
  made.href = href.split("/").map(encodeURIComponent).join("/");
  return made;
};

const shown = (promise) => {
  for (const square of document.querySelectorAll(".square")) {
    const found = data.cells[square.dataset.i].promises.find((p) => p.name === promise);
    const kind = found ? kindOf(found.verdict) : "none";
    square.className = `square ${kind}`;
    square.textContent = kind === "violated" ? found.depth : ({ holds: "✓", none: "·", vacuous: "∅" }[kind] ?? "?");
    square.setAttribute(
      "aria-label",
      `${data.cells[square.dataset.i].name}: ${found ? found.verdict : "not promised"}`,
    );
  }
  for (const button of document.querySelectorAll(".promise"))
    button.setAttribute("aria-pressed", String(button.value === promise));
  document.getElementById("promise-says").textContent = data.promises[promise];
};

const open = (cell) => {
  const body = detail.querySelector(".body");
  const title = make(
    "h2",
    "",
    `${cell.design}, ${Object.entries(cell.settings)
      .map(([k, v]) => `${k.replaceAll("_", "-")} ${v}`)
      .join(", ")}`,
  );
  title.id = "detail-title";
  const list = make("ul", "verdicts");
  for (const promise of cell.promises) {
    const line = make("li");
    line.append(make("span", `verdict ${kindOf(promise.verdict)}`, promise.verdict), make("code", "", promise.name));
    if (promise.page) line.append(linkTo(promise.page, `walk through its ${promise.depth} steps`));
    else if (promise.trace) line.append(linkTo(promise.trace, `the trace, ${promise.depth} steps`));
    list.append(line);
  }
  const command = make("div", "command");
  const copy = make("button", "copy", "Copy");
  copy.type = "button";
  command.append(make("code", "", cell.command), copy);
  body.replaceChildren(
    make("p", "eyebrow", data.faults[cell.fault]),
    title,
    make(
      "p",
      "quiet",
      `${cell.distinct.toLocaleString("en")} states, ${cell.complete ? "all there are" : "not all there are"}`,
    ),
    list,
    make("h3", "", "The same again"),
    command,
    linkTo(cell.run, "its run file"),
  );
  detail.showModal();
};

document.addEventListener("click", (event) => {
  const square = event.target.closest(".square");
  if (square) {
    event.preventDefault();
    open(data.cells[square.dataset.i]);
    return;
  }
  if (event.target.closest(".promise")) {
    shown(event.target.closest(".promise").value);
    return;
  }
  if (event.target.closest(".close") || event.target === detail) {
    detail.close();
    return;
  }
  const copy = event.target.closest(".copy");
  if (copy) {
    const text = copy.parentElement.querySelector("code").textContent;
    const done = () => {
      copy.textContent = "Copied";
      setTimeout(() => {
        copy.textContent = "Copy";
      }, 1500);
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, () => {});
  }
});
