// The page: what is shown is in the URL's fragment, so a link or a bookmark shows it again.
"use strict";

const NUMBERS = new Set(["run", "from", "to", "k"]);
/** What is said by its name, for its place in the data differs from run to run: how many there are, and what they are called. */
const NAMED = {
  kind: [() => data.kinds.length, (at) => data.kinds[at].name],
  per: [() => data.kinds.length, (at) => data.kinds[at].name],
  thread: [() => data.threads.length + threadGroups.length, threadName],
  tag: [() => data.tags.length, (at) => data.tags[at]],
  request: [() => data.requests.length, (at) => data.requests[at]],
  method: [() => data.methods.name.length, methodName],
};
let initial = start();
Object.assign(initial, stateOf(Object.entries(data.opening || {})));
const state = { ...initial, ...stateOfUrl() };
let open = null;

function start() {
  return {
    // What was followed is all that a log without events tells. Of two runs the difference is wanted.
    tab: data.leaks !== null && isEmpty() ? "leaks" : data.runs.length > 1 && data.live === undefined ? "difference" : "overview", kind: data.mainKind, measure: "", run: data.runs.length - 1, per: -1, thread: -1, tag: -1, request: -1, search: "",
    inverted: "", fold: "", leaf: "", frames: "", difference: "", each: "", method: -1, group: "", from: -1, to: -1, k: 3, theme: "", idle: "",
  };
}

/** No event was counted in any run. */
function isEmpty() {
  return data.kinds.every((kind) => kind.count.every((count) => count === 0));
}

/** The place of what has this name; else of that with this number. */
function placeOf(key, text) {
  const [count, name] = NAMED[key];
  // A group of threads may have the name of one of them, and comes behind it.
  for (let at = count() - 1; at >= 0; at--) if (name(at) === text) return at;
  const at = Number.parseInt(text, 10);
  return at >= 0 && at < count() ? at : undefined;
}

function stateOfUrl() {
  return stateOf(new URLSearchParams(location.hash.slice(1)));
}

/** What pairs of a key and a text say, as far as there is such a thing. */
function stateOf(pairs) {
  const said = {};
  for (const [key, text] of pairs) {
    if (!Object.hasOwn(initial, key)) continue;
    const value = key in NAMED ? placeOf(key, text) : NUMBERS.has(key) ? Number.parseInt(text, 10) : text;
    if (value !== undefined && !Number.isNaN(value)) said[key] = value;
  }
  if (said.run !== undefined && !data.runs[said.run]) delete said.run;
  return said;
}

/** The state as the URL says it. */
function fragment() {
  const texts = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) if (value !== initial[key]) texts.set(key, key in NAMED && value >= 0 ? NAMED[key][1](value) : value);
  return texts;
}

function set(changes) {
  Object.assign(state, changes);
  // Of a part of the time the page knows the contexts alone.
  if (isPart()) Object.assign(state, { thread: -1, tag: -1, request: -1 });
  writeAddress();
  draw();
}

function writeAddress() {
  history.replaceState(null, "", "#" + fragment());
}

/** The page asks for newer data where it came from. Its runs are what was counted lately, and since the start. */
const isLive = data.live !== undefined;
const two = data.runs.length > 1 && !isLive;
const kind = () => data.kinds[state.kind];
const hasValues = (at = state.kind) => data.kinds[at].value.some((value) => value !== 0);
/** What is summed of a kind unless something else is chosen. */
const usualMeasure = (at) => (data.kinds[at].unit !== "" || hasValues(at) ? "value" : "count");
const measure = () => state.measure || usualMeasure(state.kind);
const unit = () => (measure() === "count" ? "" : kind().unit);
const amountHead = () => (measure() === "count" ? "Events" : kind().unit === "ns" ? "Time" : kind().unit === "bytes" ? "Bytes" : "Value") + (state.per >= 0 ? " per " + data.kinds[state.per].name : "");

/** What an amount of a run is multiplied by: 1, or one over the number of the events it is told per. */
function scaleOf(run) {
  if (state.per < 0) return 1;
  const count = data.kinds[state.per].count[run];
  return count === 0 ? 0 : 1 / count;
}

let cached = { key: "", sums: [], kinds: [] };

/** Whether a part of the time is chosen. */
const isPart = () => state.from >= 0 && data.stream !== null;

/** The sums of the selection in a run, and of the time that is selected. */
function sumsOf(run) {
  return (cachedSums().sums[run] ||= new Sums(selected(run, state.idle), run));
}

/** The sums of any kind, by what is usually summed of it unless it is the selected kind. */
function sumsOfKind(kind, run) {
  if (kind === state.kind) return sumsOf(run);
  return (cachedSums().kinds[kind * data.runs.length + run] ||= new Sums(selected(run, state.idle, kind, usualMeasure(kind)), run));
}

/** The sums of what is selected; others are forgotten. */
function cachedSums() {
  const key = [state.kind, measure(), state.thread, state.tag, state.request, state.from, state.to, state.idle].join();
  if (cached.key !== key) cached = { key, sums: [], kinds: [] };
  return cached;
}

/** What is selected of a run, of a kind; `idle`: "yes", with threads that wait for work. */
function selected(run, idle, kind = state.kind, of = measure()) {
  return isPart() ? new Moment(run, idle, kind, of) : new Selection({ ...state, kind, measure: of, run, idle });
}

/** What is selected of threads that wait for work. */
function idleAmount(run) {
  const isLeftOut = leftOut({ kind: state.kind, idle: "" });
  let amount = 0;
  selected(run, "yes").visit(run, (context, all) => { if (isLeftOut(context)) amount += all; });
  return amount;
}

/** Events of a kind in a run, without those of threads that wait for work, and those alone. */
function countedOf(kind, run) {
  const isLeftOut = leftOut({ kind, idle: "" });
  const idle = { count: 0, value: 0 };
  for (let at = 0; at < shares.context.length; at++) {
    const context = shares.context[at];
    if (shares.run[at] !== run || contexts.kind[context] !== kind || !isLeftOut(context)) continue;
    idle.count += shares.count[at];
    idle.value += shares.value[at];
  }
  const { count, value } = data.kinds[kind];
  const apart = state.idle === "yes" ? { count: 0, value: 0 } : idle;
  return { count: count[run] - apart.count, value: value[run] - apart.value, idle };
}

/** A part of the run, from the stream. */
class Moment {
  constructor(run, idle, kind, measure) {
    this.run = run;
    this.kind = kind;
    this.measure = measure;
    this.isLeftOut = leftOut({ kind, idle });
  }
  visit(run, each) {
    const { cells } = data.stream;
    if (run !== data.stream.run) return;
    const amounts = this.measure === "count" ? cells.count : cells.value;
    for (let at = 0; at < cells.context.length; at++) {
      const bucket = cells.bucket[at];
      if (bucket < state.from || bucket > state.to || contexts.kind[cells.context[at]] !== this.kind) continue;
      if (this.isLeftOut(cells.context[at])) continue;
      if (amounts[at] !== 0) each(cells.context[at], amounts[at]);
    }
  }
}

const TABS = [
  ["overview", "Overview", overview, () => true],
  ["flame", "Flame", flame, () => true],
  ["methods", "Methods", methods, () => true],
  ["contexts", "Contexts", contextsTab, () => true],
  ["difference", "Difference", difference, () => two],
  ["types", "Types", types, () => true],
  ["threads", "Threads", threads, () => true],
  ["requests", "Requests", requests, () => hasRequests()],
  ["tags", "Tags", tags, () => hasTags()],
  ["waits", "Waits", waits, () => data.kinds.some((kind) => kind.unit === "ns")],
  ["leaks", "Leaks", leaks, () => data.leaks !== null],
  ["open", "Open", () => [], () => hasFacts("open")],
  ["survival", "Survival", () => [], () => hasFacts("survival")],
  ["classes", "Classes", () => [], () => hasFacts("classes")],
  ["times", "Method times", () => [], () => hasFacts("times")],
  ["paths", "k-contexts", paths, () => true],
  ["time", "Time line", timeLine, () => data.stream !== null],
];

const hasFacts = (tab) => (data.facts ?? []).some((of) => of.tab === tab);
const hasRequests = () => data.requests.length > 1;
/** Whether tags tell more than requests do. */
const hasTags = () => data.tags.length > Math.max(1, data.requests.length);

/** What is there in a log without any event, too. */
const TOLD_WITHOUT_EVENTS = new Set(["overview", "leaks"]);
/** Where sums leave out threads that wait for work, and say so above; the overview says it by kind. */
const APART = new Set(["flame", "methods", "contexts", "difference", "types", "threads", "requests", "tags", "paths"]);

/** In place of tables and graphs that would be empty. */
function nothingNote() {
  const followed = data.leaks !== null ? ["; objects were followed: ", element("button", { type: "button", onclick: () => set({ tab: "leaks" }) }, "Leaks"), " says what of them lives."] : ["."];
  return element("p", {}, isLive && !data.live.ended ? "No event was counted yet" : "No event was counted in this run", ...followed);
}

/** That threads which wait for work are apart, and how much that is. */
function idleNote() {
  if (kind().unit !== "ns") return null;
  const amount = idleAmount(state.run) * scaleOf(state.run);
  return amount === 0 ? null : idleLine(human(amount, unit()));
}

function idleLine(amounts) {
  const isShown = state.idle === "yes";
  const press = element("button", { type: "button", onclick: () => set({ idle: isShown ? "" : "yes" }) }, isShown ? "Leave them out" : "Count them, too");
  return element("p", { class: "note" }, `${isShown ? "with" : "without"} idle threads, which wait for work: ${amounts}. `, press);
}

/** How long "lately" is, of a JVM that runs. */
function lately() {
  const { seconds } = data.live;
  return seconds === null ? "lately (not known yet: the log was read once)" : `in the last ${human(seconds * 1e9, "ns")}`;
}

/** A run among several, at the end of a column's head. */
function runHead(run) {
  if (isLive) return run === 0 ? ", " + lately() : "";
  return two ? [" (old)", " (new)"][run] : "";
}

function runName(run) {
  if (isLive) return run === 0 ? lately() : "since the start";
  return (two ? ["old: ", "new: "][run] : "") + data.runs[run].file;
}

function draw() {
  tables = [];
  traces = [];
  if (open) open.close();
  open = null;
  document.documentElement.classList.toggle("dark", state.theme ? state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  drawControls();
  const tabs = TABS.filter(([, , , has]) => has());
  const [id, name, show] = tabs.find(([key]) => key === state.tab) || tabs[0];
  document.getElementById("tabs").replaceChildren(...tabs.map(([key, text]) => element("button", {
    type: "button", role: "tab", id: "tab-" + key, "aria-selected": key === id ? "true" : "false", "aria-controls": "main", tabindex: key === id ? "0" : "-1",
    onclick: () => set({ tab: key }), onkeydown: (event) => stepTab(event, tabs, key),
  }, text)));
  const main = document.getElementById("main");
  main.setAttribute("role", "tabpanel");
  main.setAttribute("aria-labelledby", "tab-" + id);
  main.setAttribute("aria-label", name);
  const content = isEmpty() && !TOLD_WITHOUT_EVENTS.has(id) ? [nothingNote()] : [APART.has(id) ? idleNote() : null, ...factTables(id), show()];
  main.replaceChildren(...content.flat().filter(Boolean));
  if (open && open.ready) open.ready();
  findMatches();
}

function searchText() {
  return state.search;
}

/** What the search has found in the tab, as functions that show it; `at`: the one that is shown. */
let found = { list: [], at: -1 };

/** Looks for the search in the tab, and shows the first match unless newer data have come. */
function findMatches() {
  const at = earlier === null ? -1 : found.at;
  const isSearch = state.search !== "" && pattern(state.search) !== null;
  const views = isSearch && open && open.views ? open.views : [];
  found = { list: views.flatMap((view) => view.matches().map((box) => () => view.jump(box))), at: -1 };
  takeRows();
  if (at < 0) stepMatch(1);
  else found.at = Math.min(at, found.list.length - 1);
  tellMatch();
}

/** Of a table the matches are the rows that are shown. */
function takeRows() {
  const rows = document.querySelectorAll("#main tr[data-match]");
  if (rows.length > 0) found.list = [...rows].map((row) => () => showRow(row));
}

function stepMatch(by) {
  const more = document.querySelector("#main button[data-more]:not([hidden])");
  if (by > 0 && found.at + by >= found.list.length && found.list.length > 0 && more) more.click();
  takeRows();
  const { list, at } = found;
  if (list.length === 0) return;
  found.at = (at + by + list.length) % list.length;
  list[found.at]();
  tellMatch();
}

function showRow(row) {
  document.querySelector("#main tr[aria-current]")?.removeAttribute("aria-current");
  row.setAttribute("aria-current", "true");
  row.scrollIntoView({ block: "nearest" });
  if (document.activeElement?.id !== "search") row.querySelector("button.link")?.focus({ preventScroll: true });
}

function tellMatch() {
  document.getElementById("position").textContent = found.at < 0 ? "" : `${grouped(found.at + 1)} of ${grouped(found.list.length)}`;
  for (const id of ["previous", "next"]) document.getElementById(id).hidden = found.at < 0;
}

function stepTab(event, tabs, key) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by) return;
  const at = (tabs.findIndex(([of]) => of === key) + by + tabs.length) % tabs.length;
  set({ tab: tabs[at][0] });
  document.getElementById("tab-" + tabs[at][0]).focus();
}

function fill(select, options, value) {
  const texts = JSON.stringify(options);
  // A list that is open closes when its options are replaced.
  if (select.dataset.options !== texts) {
    select.dataset.options = texts;
    select.replaceChildren(...options.map(([key, text]) => element("option", { value: key }, text)));
  }
  select.value = String(value);
}

function drawControls() {
  const get = (id) => document.getElementById(id);
  const shown = two ? data.runs : data.runs.slice(-1);
  get("title").textContent = "lucce: " + shown.map((run) => run.command || run.file).join("  →  ");
  fill(get("kind"), isEmpty() ? [[state.kind, "none"]] : data.kinds.map((kind, at) => [at, kind.name]), state.kind);
  get("measure").parentElement.hidden = isEmpty();
  fill(get("measure"), usualMeasure(state.kind) === "count" ? [["count", "number of events"]] : [["value", { bytes: "bytes", ns: "time" }[kind().unit] || "value"], ["count", "number of events"]], measure());
  fill(get("run"), data.runs.map((_, at) => [at, runName(at)]), state.run);
  get("run-label").hidden = data.runs.length < 2;
  fill(get("per"), [[-1, "run"], ...data.kinds.map((kind, at) => [at, kind.name + " event"])], state.per);
  get("per-label").hidden = data.kinds.length < 2;
  const alone = [...data.threads.keys()].filter((at) => groupOfThread[at] === at || at === state.thread);
  const groups = threadGroups.map(({ name, members }, at) => [at + data.threads.length, `${name} (${members.length} threads)`]);
  fill(get("thread"), [[-1, "all"], ...groups, ...alone.map((at) => [at, threadName(at)])], state.thread);
  fill(get("tag"), [[-1, "all"], ...data.tags.map((name, at) => [at, name])], state.tag);
  get("tag-label").hidden = !hasTags();
  fill(get("request"), [[-1, "all"], ...data.requests.map((name, at) => [at, name])], state.request);
  get("request-label").hidden = !hasRequests();
  for (const id of ["thread", "tag", "request"]) get(id).disabled = isPart();
  if (get("search").value !== state.search) get("search").value = state.search;
  drawMatched();
}

function drawMatched() {
  const search = pattern(state.search);
  const output = document.getElementById("matched");
  document.getElementById("search").setAttribute("aria-invalid", String(!search));
  if (state.search === "") output.textContent = "";
  else if (!search) output.textContent = "no regular expression";
  else {
    const sums = sumsOf(state.run);
    const inside = new Uint8Array(tree.size);
    const known = matcher();
    let sum = 0;
    for (let node = 1; node < tree.size; node++) {
      inside[node] = inside[tree.parent[node]] || known(tree.method[node]) ? 1 : 0;
      if (inside[node]) sum += sums.self[node];
    }
    for (let at = 0; at < contexts.node.length; at++) {
      if (!inside[contexts.node[at]] && search.test(typeName(contexts.type[at]))) sum += sums.byContext[at];
    }
    output.textContent = `${human(sum * scaleOf(state.run), unit())}, ${percent(sum, sums.total) || "0%"}: stacks and types that match`;
  }
}

/** Whether a method's name matches the search. */
function matcher() {
  const search = pattern(state.search);
  const known = new Int8Array(data.methods.name.length).fill(-1);
  return (method) => {
    if (!search || state.search === "" || method === REST) return false;
    if (known[method] < 0) known[method] = search.test(methodName(method)) ? 1 : 0;
    return known[method] === 1;
  };
}

function list(pairs) {
  return element("dl", {}, ...pairs.filter(([, value]) => value !== null && value !== undefined && value !== "").flatMap(([key, value]) => [element("dt", {}, key), element("dd", {}, value)]));
}

function section(title, ...content) {
  return element("section", {}, element("h2", {}, title), ...content);
}

function overview() {
  const shown = two ? data.runs : data.runs.slice(-1);
  const runs = shown.map((run, at) => section(two ? (at === 0 ? "Old run" : "New run") : "Run",
    list([
      ["Log", run.file], ["Run", run.run], ["Command", run.command], ["JVM", run.jvm], ["Started", run.start], ["Duration", run.seconds === null ? null : human(run.seconds * 1e9, "ns")],
      ["Ended", run.ended ? null : isLive && !data.live.ended ? "it runs" : "the JVM was killed or still ran; all that it had recorded is here"],
      ["Coverage", run.coverage], ["Lost", run.lost > 0 ? grouped(run.lost) + " events" : "nothing"],
    ]), ...run.notes.map((text) => element("p", { class: "note" }, text)), ...run.warnings.map((text) => element("p", { class: "warn" }, text))));
  const cards = element("div", { class: "cards" }, ...runs);
  if (isEmpty()) return [cards, section("What was counted", nothingNote(), data.leaks === null ? null : element("p", { class: "lines" }, data.leaks.says))];
  const rows = data.kinds.map((kind, at) => ({ kind, at, counted: data.runs.map((_, run) => countedOf(at, run)) })).filter(({ kind }) => kind.count.some((count) => count > 0));
  const totals = table(rows, [
    { head: "Kind", of: (row) => row.kind.name, shown: (row) => element("button", { type: "button", class: "link", onclick: () => set({ kind: row.at, measure: "" }) }, row.kind.name) },
    ...data.runs.flatMap((_, run) => [
      { head: "Events" + runHead(run), isNumber: true, of: (row) => row.counted[run].count, shown: (row) => grouped(row.counted[run].count) },
      { head: "Value" + runHead(run), isNumber: true, of: (row) => row.counted[run].value, shown: (row) => (row.kind.unit === "" && row.counted[run].value === 0 ? "" : human(row.counted[run].value, row.kind.unit)) },
    ]),
  ], { by: 1 });
  const idle = rows.filter((row) => row.counted[state.run].idle.count > 0).map((row) => `${row.kind.name} ${human(row.counted[state.run].idle.value, "ns")}`);
  return [
    ...(hasOwn ? ownCards(runs) : [cards]), section("What was counted", totals, idle.length === 0 ? null : idleLine(idle.join(", "))),
    element("div", { class: "cards" }, section("Types", largestOf(byType(), "types")), section("Threads", largestOf(byThread(), "threads")), section("Methods, with all they call", largestOf(byMethod("method"), "methods")), hasOwn ? null : section("Packages, with all they call", largestOf(byMethod("package"), "methods", "package"))),
    restNote(),
  ];
}

/** Lines of each list of the overview, where all lists fit one row and where they do not. */
const FEW_LISTS = { most: 3, lines: 12 };
const CARD_LINES = 5;

/** The overview's first screen: the largest own lines of each kind, what lives, entries and requests, before the facts of the runs. */
function ownCards(runs) {
  const { run } = state;
  const scale = scaleOf(run);
  const byEvents = data.kinds.map((kind, at) => ({ at, count: kind.count[run], isFirst: at === state.kind })).filter(({ at, count }) => count > 0 && data.kinds[at].name !== REQUEST && !data.kinds[at].supplement);
  byEvents.sort((a, b) => b.isFirst - a.isFirst || b.count - a.count);
  const isFew = byEvents.length + 1 + (data.leaks?.alive ? 1 : 0) + (hasRequests() ? 1 : 0) <= FEW_LISTS.most;
  const ownCard = (...list) => largestRows(isFew ? FEW_LISTS.lines : CARD_LINES, ...list);
  const cards = byEvents.map(({ at }) => {
    const of = at === state.kind ? measure() : usualMeasure(at);
    const unit = of === "count" ? "" : data.kinds[at].unit;
    const sums = sumsOfKind(at, run);
    const rows = byOwnCode("own", sums).filter((row) => row.isOwn);
    const change = { kind: at, measure: of === usualMeasure(at) ? "" : of };
    return ownCard(`Own lines: ${data.kinds[at].name}`, rows, unit, sums.total * scale, () => set({ ...change, tab: "methods", group: "own", search: "" }), (row) => set({ ...change, tab: "methods", group: "own", search: methodSearch(row.name) }));
  });
  const living = data.leaks === null || data.leaks.alive === null ? null : ownCard("Own lines: live objects", livingLines(), "bytes", null, () => set({ tab: "leaks", search: "" }), (row) => set({ tab: "leaks", search: methodSearch(row.name) }));
  const total = sumsOf(run).total * scale;
  const entries = ownCard(`Entries: ${kind().name}`, byOwnCode("entry").filter((row) => row.isOwn), unit(), total, () => set({ tab: "methods", group: "entry", search: "" }), (row) => set({ tab: "methods", group: "entry", search: methodSearch(row.name) }));
  const ofRequests = hasRequests() ? ownCard(`Requests: ${kind().name}`, byRequest().filter((row) => !row.isLast), unit(), total, () => set({ tab: "requests", search: "" }), (row) => set({ tab: "flame", request: row.key })) : null;
  const [first, ...others] = cards;
  const lists = [first, living, entries, ofRequests, ...others].filter(Boolean);
  const isInRow = lists.length + runs.length <= FEW_LISTS.most;
  const grid = element("div", { class: "cards own", role: "group", "aria-label": "Own lines" }, ...lists, ...(isInRow ? runs : []));
  return [grid, isInRow ? null : element("div", { class: "cards" }, ...runs)];
}

/** A search for the method of a frame's text. */
function methodSearch(text) {
  return text.replace(/\(.*$/, "").replace(/[$\\^]/g, "\\$&");
}

/** The largest rows, in one card; null if there is none. `total`: what shares are of. */
function largestRows(most, title, rows, unit, total, all, one) {
  if (rows.length === 0) return null;
  const largest = rows.sort((a, b) => b.amount - a.amount).slice(0, most);
  const line = (row) => element("tr", { class: row.isOwn ? "own" : null },
    element("td", { class: "name" }, element("button", { type: "button", class: "link", title: row.name, onclick: () => one(row) }, row.isOwn ? shortName(row.name) : row.name)),
    element("td", { class: "n", title: grouped(row.amount) }, human(row.amount, unit)),
    total === null ? null : element("td", { class: "n" }, percent(row.amount, total)));
  const heads = ["Name", "Amount", ...(total === null ? [] : ["Share"])].map((head) => element("th", { scope: "col" }, head));
  const more = rows.length > largest.length ? `, ${most} of ${grouped(rows.length)}` : "";
  return element("section", {},
    element("h2", {}, element("button", { type: "button", class: "link", onclick: all }, title), element("span", { class: "note" }, (total === null ? "" : ", " + human(total, unit)) + more)),
    element("table", {}, element("thead", { class: "unseen" }, element("tr", {}, ...heads)), element("tbody", {}, ...largest.map(line))));
}

/** The own lines of what lives, as far as the page lists it. */
function livingLines() {
  const amounts = new Map();
  for (const { at, bytes } of data.leaks.alive.rows) if (at !== null && isOwnText(at)) amounts.set(at, (amounts.get(at) || 0) + bytes);
  return [...amounts].map(([name, amount]) => ({ name, amount, isOwn: true }));
}

/** Whether a frame's text is of own code. */
function isOwnText(text) {
  const method = text.slice(0, text.indexOf("("));
  return data.classOrigins[data.classes.indexOf(method.slice(0, method.lastIndexOf(".")))] === "a";
}

function restNote() {
  const { contexts: left } = data.rest;
  return left === 0 ? null : element("p", { class: "note" }, `${grouped(left)} small contexts are in this page as exact sums only, in boxes and lines named "(rest)". The log has each of them.`);
}

/** `A.m:7` of `a.b.A.m(A.java:7)`. */
function shortName(name) {
  return name.replace(/^(?:[a-z_][\w]*\.)+(?=[^.]+\.[^.]+$|[^.]+\.[^.]+\()/, "").replace(/\([^():]*(:\d+)?\)$/, "$1");
}

function largestOf(rows, tab, group, most = 8) {
  const sums = sumsOf(state.run);
  const last = (row) => (row.isLast ? 1 : 0);
  return element("div", {}, table(rows.sort((a, b) => last(a) - last(b) || b.amount - a.amount).slice(0, most), [
    { head: "Name", isName: true, of: (row) => row.name, shown: (row) => (row.isOwn && OWN_GROUPS[group] ? element("span", { title: row.name }, shortName(row.name)) : row.name) },
    amountColumn(), shareColumn(sums.total * scaleOf(state.run)),
  ], { by: 1 }), element("button", { type: "button", onclick: () => set({ tab, group: group || "method" }) }, "All"));
}

function amountColumn() {
  return { head: amountHead(), isNumber: true, of: (row) => row.amount, shown: (row) => element("span", { title: grouped(row.amount) }, human(row.amount, unit())) };
}

function shareColumn(total) {
  return { head: "Share", isNumber: true, of: (row) => row.amount, shown: (row) => percent(row.amount, total) };
}

function rowsOf(amounts, name, run = state.run) {
  const scale = scaleOf(run);
  return [...amounts].map(([key, amount]) => ({ key, name: name(key), amount: amount * scale }));
}

function summed(keyOf) {
  const sums = sumsOf(state.run);
  const amounts = new Map();
  sums.byContext.forEach((amount, context) => {
    if (amount === 0) return;
    const key = keyOf(context);
    amounts.set(key, (amounts.get(key) || 0) + amount);
  });
  return amounts;
}

function byType() {
  return rowsOf(summed((context) => contexts.type[context]), (type) => typeName(type) || (data.rest.contexts > 0 ? "(rest, or no type)" : "(no type)")).map((row) => ({ ...row, isLast: row.key < 0 }));
}

/** Sums of the shares that are selected, by key. */
function byColumn(run, keyOf, isSelected, name) {
  const amounts = new Map();
  const all = measure() === "count" ? shares.count : shares.value;
  const isLeftOut = leftOut(state);
  for (let at = 0; at < shares.context.length; at++) {
    if (shares.run[at] !== run || contexts.kind[shares.context[at]] !== state.kind || all[at] === 0) continue;
    if (!isSelected(at) || isLeftOut(shares.context[at])) continue;
    const key = keyOf(at);
    amounts.set(key, (amounts.get(key) || 0) + all[at]);
  }
  return rowsOf(amounts, name, run);
}

/** Sums by thread; those of a pool are one row, unless only `group` is wanted, thread by thread. */
function byThread(run = state.run, group = null) {
  if (group !== null) return byColumn(run, (at) => shares.thread[at], (at) => isTagged(state, at) && groupOfThread[shares.thread[at]] === group, threadName);
  return byColumn(run, (at) => groupOfThread[shares.thread[at]], (at) => isTagged(state, at), threadName);
}

function byTag(run = state.run) {
  const isSelected = (at) => isOfThread(state.thread, shares.thread[at]) && isTagged({ request: state.request }, at);
  return byColumn(run, (at) => shares.tag[at], isSelected, (tag) => data.tags[tag]);
}

function byRequest(run = state.run) {
  const isSelected = (at) => isOfThread(state.thread, shares.thread[at]) && isTagged({ tag: state.tag }, at);
  const rows = byColumn(run, requestOf, isSelected, (request) => data.requests[request]);
  return rows.map((row) => ({ ...row, isLast: row.name === NO_REQUEST }));
}

/** What the page has of the whole run only. */
function wholeNote() {
  return isPart() ? element("p", { class: "note" }, "of the whole run: the part of the time that is chosen does not apply here") : null;
}

const GROUPS = {
  method: (node) => tree.method[node],
  class: (node) => className(tree.method[node]),
  package: (node) => packageName(tree.method[node]),
  line: (node) => frameText(node),
};

/** Sums by the own code of a context: its innermost own line, or its outermost own method. */
const OWN_GROUPS = {
  own: (node) => frameText(innermostOwn[node]),
  entry: (node) => methodName(tree.method[outermostOwn[node]]),
};
const NO_OWN = "(no own code)";
const GROUP_NAMES = [["own", "by own line"], ["entry", "by entry"], ["method", "by method"], ["class", "by class"], ["package", "by package"], ["line", "by line"]];
/** Own lines come first where there are any. */
const usualGroup = () => (hasOwn ? "own" : "method");
const groupNames = () => GROUP_NAMES.filter(([group]) => hasOwn || !OWN_GROUPS[group]);

/** The own code of what happened in a node. Sums are divided by it, but for very many and for those of a part of the time. */
function ownKey(group, node) {
  const isSum = node > 0 && tree.method[node] === REST;
  const isMixed = data.rest.mixed || (isPart() && tree.parent[node] === 0);
  if (isSum && isMixed && (group === "own" || outermostOwn[node] === 0)) return "(rest)";
  return innermostOwn[node] === 0 ? NO_OWN : OWN_GROUPS[group](node);
}

/** Each event counts in one row. */
function byOwnCode(group, sums = sumsOf(state.run)) {
  const scale = scaleOf(state.run);
  const rows = new Map();
  for (let node = 0; node < tree.size; node++) {
    const amount = sums.self[node] * scale;
    if (amount === 0) continue;
    const key = ownKey(group, node);
    let row = rows.get(key);
    if (!row) {
      const isLast = key === NO_OWN || key === "(rest)";
      row = { key, name: key, amount: 0, self: 0, isLast, isOwn: !isLast, method: isLast ? REST : tree.method[outermostOwn[node]] };
      rows.set(key, row);
    }
    row.amount += amount;
  }
  return [...rows.values()];
}

function byFrames(group, sums) {
  return OWN_GROUPS[group] ? byOwnCode(group, sums) : byMethod(group, sums);
}

/** What a method, class, package or line and all that it calls amount to; each counts once in a stack. */
function byMethod(group, sums = sumsOf(state.run)) {
  const keyOf = GROUPS[group];
  const keys = new Map();
  const firsts = [];
  const of = new Int32Array(tree.size);
  // All nodes of a method have one key, unless lines are told apart.
  const ofMethod = new Int32Array(data.methods.name.length + 1).fill(-1);
  for (let node = 1; node < tree.size; node++) {
    const method = tree.method[node];
    let at = group === "line" ? -1 : ofMethod[method + 1];
    if (at < 0) {
      const key = keyOf(node);
      at = keys.get(key) ?? keys.size;
      if (at === keys.size) {
        keys.set(key, at);
        firsts.push(method);
      }
      ofMethod[method + 1] = at;
    }
    of[node] = at;
  }
  const whole = new Float64Array(keys.size);
  const self = new Float64Array(keys.size);
  const on = new Int32Array(keys.size);
  // Depth first, so that what is on the path is known; a key counts at its outermost node.
  const visit = [0];
  while (visit.length > 0) {
    const at = visit.pop();
    if (at < 0) {
      on[of[-at]]--;
      continue;
    }
    if (at > 0) {
      if (sums.whole[at] === 0) continue;
      self[of[at]] += sums.self[at];
      if (on[of[at]]++ === 0) whole[of[at]] += sums.whole[at];
      visit.push(-at);
    }
    for (let child = children.first[at]; child < children.first[at + 1]; child++) visit.push(children.list[child]);
  }
  const scale = scaleOf(state.run);
  return [...keys].map(([key, at]) => ({ key, name: group === "method" ? methodName(key) : key, amount: whole[at] * scale, self: self[at] * scale, isLast: firsts[at] === REST, isOwn: hasOwn && isOwn(firsts[at]) })).filter((row) => row.amount > 0);
}

function methods() {
  const sums = sumsOf(state.run);
  const total = sums.total * scaleOf(state.run);
  // What a difference is grouped by may be no part of a stack.
  const group = groupNames().some(([name]) => name === state.group) ? state.group : usualGroup();
  const rows = byFrames(group, sums);
  const choose = element("select", { "aria-label": "Sums by", onchange: () => set({ group: choose.value }) });
  fill(choose, groupNames(), group);
  if (OWN_GROUPS[group]) {
    const details = (row) => element("div", {}, group === "entry" && !row.isLast ? callersButton(row.method) : null, whereTable((context) => ownKey(group, contexts.node[context]) === row.key));
    return [element("div", { class: "bar" }, choose), table(rows, [{ head: "Name", isName: true, of: (row) => row.name, shown: (row) => row.name }, amountColumn(), shareColumn(total)], { by: 1, filter: (row) => row.name, details })];
  }
  return [
    element("div", { class: "bar" }, choose),
    table(rows, [
      { head: "Name", isName: true, of: (row) => row.name, shown: (row) => row.name },
      { head: amountHead() + ", with callees", isNumber: true, of: (row) => row.amount, shown: (row) => human(row.amount, unit()) },
      shareColumn(total),
      { head: "in itself", isNumber: true, of: (row) => row.self, shown: (row) => human(row.self, unit()) },
      { head: "Share", isNumber: true, of: (row) => row.self, shown: (row) => percent(row.self, total) },
    ], { by: 1, filter: (row) => row.name, details: group === "method" ? (row) => (row.isLast ? "what is too small to be shown one by one" : callersButton(row.key)) : null }),
  ];
}

function callersButton(method) {
  return element("button", { type: "button", onclick: () => set({ tab: "flame", method }) }, "Callers and callees");
}

const isFolded = () => hasOwn && state.frames !== "all";

/** The text of a trace, with own code marked; runs of other frames are one line unless all are wanted. */
function traceLines(node) {
  const lines = [];
  for (let at = node; at > 0; at = tree.parent[at]) {
    let run = at;
    let length = 0;
    // The frame of the event itself is always shown.
    for (let next = at; isFolded() && at !== node && next > 0 && !isOwn(tree.method[next]); next = tree.parent[next]) {
      run = next;
      length++;
    }
    if (length > 1) {
      const runs = new FrameRuns();
      runs.add(at, run, length, [0, 1]);
      lines.push("\t" + runs.name, "\n");
      at = run;
      continue;
    }
    const text = "\tat " + frameText(at);
    lines.push(hasOwn && isOwn(tree.method[at]) ? element("b", { class: "own" }, text) : text, "\n");
  }
  return lines.slice(0, -1);
}

/** Draws the traces that are open, again. */
let traces = [];

function traceBox(context) {
  const node = contexts.node[context];
  const type = typeName(contexts.type[context]);
  const head = [contexts.number[context], contexts.stack[context], type].filter(Boolean).join("  ");
  const text = traceText(node);
  const lines = element("pre", { tabindex: "0", "aria-label": "stack trace" });
  const fold = element("button", { type: "button", title: "F", onclick: toggleFrames });
  const drawTrace = () => {
    lines.replaceChildren(...traceLines(node));
    fold.textContent = isFolded() ? "All frames" : "Fold libraries";
  };
  drawTrace();
  traces.push(drawTrace);
  return element("div", { class: "trace" },
    list([["Number", contexts.number[context]], ["Content id", contexts.stack[context]]]), lines,
    element("button", { type: "button", onclick: () => copy(head + "\n" + text) }, "Copy"), " ", hasOwn ? fold : null);
}

/** Of rows that are contexts. */
function typeColumn() {
  return { head: "Type", isText: true, of: (row) => typeName(contexts.type[row.context]), shown: (row) => typeName(contexts.type[row.context]) };
}

function idColumn() {
  return { head: "Content id", isText: true, of: (row) => contexts.stack[row.context], shown: (row) => contexts.stack[row.context] };
}

/**
 * What reached the heap of rows that are contexts: samples with the same trace and type, which are events of another kind.
 * Without a sample, the compiler removed the allocations if samples were certain (99.9%): seven are expected, and no sample
 * of this type is without counts.
 */
function heapColumns() {
  const heap = data.kinds.findIndex((kind) => kind.name === "heap");
  const interval = data.heapInterval;
  if (!interval || heap < 0 || data.kinds[state.kind].name !== "alloc" || measure() === "count") return [];
  const key = (context) => contexts.node[context] + " " + contexts.type[context];
  const sum = (kind, measure) => {
    const amounts = new Map();
    new Selection({ ...state, kind, measure }).visit(state.run, (context, amount) => amounts.set(key(context), (amounts.get(key(context)) || 0) + amount));
    return amounts;
  };
  const [sampled, bytes, objects] = [sum(heap, "value"), sum(state.kind, "value"), sum(state.kind, "count")];
  const unjoined = new Set([...sampled.keys()].filter((context) => !bytes.has(context)).map((context) => context.split(" ")[1]));
  const expected = (context) => objects.get(context) * -Math.expm1(-bytes.get(context) / objects.get(context) / interval);
  const shown = (context) => {
    const amount = sampled.get(context) || 0;
    if (amount > 0) return human(amount, "bytes") + " ±" + ((200 * Math.sqrt(interval / amount)).toFixed(0)) + "%";
    return expected(context) > 6.91 && !unjoined.has(context.split(" ")[1]) ? "removed by the compiler" : "no sample";
  };
  const onHeap = { head: "On the heap", isNumber: true, of: (row) => sampled.get(key(row.context)) || 0, shown: (row) => (row.isLast ? "" : shown(key(row.context))) };
  // How long objects live is known of whole runs.
  const isWhole = hasFacts("survival") && state.run === data.runs.length - 1;
  return [onHeap, ...(isWhole ? survivalColumns((row) => key(row.context), sampled, sum) : [])];
}

/** How long the sampled objects of rows live: the part that died young, and the bytes that reached the old generation. */
function survivalColumns(key, sampled, sum) {
  const bytesOf = (name) => {
    const kind = data.kinds.findIndex((of) => of.name === name);
    return kind < 0 ? new Map() : sum(kind, "value");
  };
  const [died, old] = [bytesOf("survive-died"), bytesOf("survive")];
  const column = (head, of, text) => ({ head, isNumber: true, of, shown: (row) => (row.isLast || !sampled.has(key(row)) ? "" : text(of(row))) });
  return [
    column("Died young", (row) => (died.get(key(row)) || 0) / (sampled.get(key(row)) || 1), (part) => percent(part, 1)),
    column("Old", (row) => old.get(key(row)) || 0, (bytes) => human(bytes, "bytes")),
  ];
}

function contextsTab() {
  const sums = sumsOf(state.run);
  const total = sums.total * scaleOf(state.run);
  const rows = [];
  sums.byContext.forEach((amount, context) => {
    const method = tree.method[contexts.node[context]];
    if (amount > 0) rows.push({ context, amount: amount * scaleOf(state.run), isLast: contexts.node[context] > 0 && method === REST, isOwn: hasOwn && isOwn(method) });
  });
  return [table(rows, [
    { head: "Innermost frame", isName: true, of: (row) => frameText(contexts.node[row.context]), shown: (row) => frameCell(contexts.node[row.context]) },
    typeColumn(), amountColumn(), shareColumn(total), ...heapColumns(),
    { head: "Number", isText: true, of: (row) => contexts.number[row.context], shown: (row) => contexts.number[row.context] }, idColumn(),
  ], { by: 2, details: (row) => traceBox(row.context), filter: (row) => contexts.number[row.context] + " " + contexts.stack[row.context] + " " + typeName(contexts.type[row.context]), also: traceMatcher }), restNote()];
}

/** Whether a frame of a context's trace matches. */
function traceMatcher(search) {
  const inside = new Uint8Array(tree.size);
  for (let node = 1; node < tree.size; node++) inside[node] = inside[tree.parent[node]] || search.test(frameText(node)) ? 1 : 0;
  return (row) => inside[contexts.node[row.context]] === 1;
}

/** A context's innermost frame, and its innermost line of own code if that is another. */
function frameCell(node) {
  if (node > 0 && tree.method[node] === REST) return "(rest) below " + frameText(tree.parent[node]);
  const own = innermostOwn[node];
  if (!hasOwn || own === 0 || own === node) return frameText(node);
  return element("span", {}, frameText(node), element("span", { class: "at own" }, "← " + frameText(own)));
}

function types() {
  const total = sumsOf(state.run).total * scaleOf(state.run);
  return table(byType(), [{ head: "Type", isName: true, of: (row) => row.name, shown: (row) => row.name }, amountColumn(), shareColumn(total)], {
    by: 1, filter: (row) => row.name, details: (row) => whereTable((context) => contexts.type[context] === row.key),
  });
}

/** The contexts that are selected, with their traces. */
function whereTable(isSelected) {
  const sums = sumsOf(state.run);
  const rows = [];
  sums.byContext.forEach((amount, context) => {
    if (amount > 0 && isSelected(context)) rows.push({ context, amount: amount * scaleOf(state.run), isLast: tree.method[contexts.node[context]] === REST });
  });
  return table(rows, [{ head: "Where", isName: true, of: (row) => frameText(contexts.node[row.context]), shown: (row) => frameCell(contexts.node[row.context]) }, amountColumn()], { by: 1, details: (row) => traceBox(row.context) });
}

function threads() {
  const press = (row) => element("button", { type: "button", onclick: () => set({ tab: "flame", thread: row.key }) }, row.key < data.threads.length ? "Flame graph of this thread" : "Flame graph of these threads");
  const members = (row) => table(byThread(state.run, row.key), [{ head: "Thread", isName: true, of: (of) => of.name, shown: (of) => of.name }, amountColumn()], { by: 1, details: press });
  return sumsTable(byThread(), "Thread", (row) => element("div", {}, press(row), row.key < data.threads.length ? null : members(row)));
}

function tags() {
  return sumsTable(byTag(), "Tag", (row) => element("button", { type: "button", onclick: () => set({ tab: "flame", tag: row.key }) }, "Flame graph under this tag"));
}

/** The kind of events that counts requests. */
const REQUEST = "request";
const NO_REQUEST = "(no request)";

/** Each request with what was counted of each kind, in all or for each time that it came. */
function requests() {
  const counted = data.kinds.map((kind, at) => ({ kind, at, of: at === state.kind ? measure() : usualMeasure(at) })).filter(({ kind }) => kind.count[state.run] > 0);
  counted.sort((a, b) => (b.kind.name === REQUEST) - (a.kind.name === REQUEST));
  const rows = data.requests.map((name, request) => ({ key: request, name, isLast: name === NO_REQUEST, amounts: counted.map(() => 0) }));
  counted.forEach(({ at, of }, column) => {
    const visit = new Selection({ ...state, kind: at, measure: of, request: -1 });
    visit.visitShares(state.run, (share, amount) => { rows[requestOf(share)].amounts[column] += amount; });
  });
  const times = counted.findIndex(({ kind }) => kind.name === REQUEST);
  const isEach = state.each === "yes" && times >= 0;
  const box = element("input", { type: "checkbox", onchange: () => set({ each: box.checked ? "yes" : "" }) });
  box.checked = isEach;
  // Of what came outside of requests, or before counting began, there is no number for each.
  const hasEach = (row, column) => !isEach || column === times || row.amounts[times] > 0;
  const amountOf = (row, column) => (!hasEach(row, column) ? -1 : isEach && column !== times ? row.amounts[column] / row.amounts[times] : row.amounts[column]);
  const unitOf = ({ kind, of }) => (of === "count" ? "" : kind.unit);
  const columns = counted.map((one, column) => ({
    head: one.kind.name === REQUEST ? "Requests" : one.kind.name + (isEach ? ", each" : ""), isNumber: true, of: (row) => amountOf(row, column),
    shown: (row) => (!hasEach(row, column) ? "" : element("span", { title: grouped(row.amounts[column]) }, human(amountOf(row, column), unitOf(one)))),
  }));
  const press = (row) => element("button", { type: "button", onclick: () => set({ tab: "flame", request: row.key }) }, "Flame graph of this request");
  const by = 1 + counted.findIndex(({ at }) => at === state.kind);
  return [
    wholeNote(), times < 0 ? null : element("div", { class: "bar" }, element("label", {}, box, " for each request")),
    table(rows.filter((row) => row.amounts.some((amount) => amount !== 0)), [{ head: "Request", isName: true, of: (row) => row.name, shown: (row) => row.name }, ...columns], { by, filter: (row) => row.name, details: press }),
  ];
}

function sumsTable(rows, head, details) {
  const total = rows.reduce((sum, row) => sum + row.amount, 0);
  // A name with a star stands for several threads; the command's documents say when.
  const several = head === "Thread" && rows.some((row) => row.name.includes("*")) ? element("p", { class: "note" }, "A name with * stands for threads whose names differ in digits only.") : null;
  return [wholeNote(), several, table(rows, [{ head, isName: true, of: (row) => row.name, shown: (row) => row.name }, amountColumn(), shareColumn(total)], { by: 1, filter: (row) => row.name, details })];
}

const IDLE = "idle";

function waits() {
  const waiting = data.kinds.map((kind, at) => [kind, at]).filter(([kind]) => kind.unit === "ns");
  const { count, value, context, run } = shares;
  return [wholeNote(), ...waiting.map(([kind, at]) => {
    const sums = new Map();
    for (let share = 0; share < context.length; share++) {
      if (run[share] !== state.run || contexts.kind[context[share]] !== at) continue;
      const key = isIdle[context[share]] ? IDLE : contexts.type[context[share]];
      const row = sums.get(key) || { name: key === IDLE ? "(idle: threads that wait for work)" : typeName(key) || "(no type)", count: 0, amount: 0 };
      row.count += count[share];
      row.amount += value[share];
      sums.set(key, row);
    }
    return section(kind.name, table([...sums.values()], [
      { head: "What", isName: true, of: (row) => row.name, shown: (row) => row.name },
      { head: "Time", isNumber: true, of: (row) => row.amount, shown: (row) => human(row.amount, "ns") },
      { head: "Times", isNumber: true, of: (row) => row.count, shown: (row) => grouped(row.count) },
      { head: "On average", isNumber: true, of: (row) => row.amount / (row.count || 1), shown: (row) => human(Math.round(row.amount / (row.count || 1)), "ns") },
    ], { by: 1, details: () => element("button", { type: "button", onclick: () => set({ tab: "flame", kind: at, measure: "value", leaf: "yes" }) }, "Where: flame graph") }));
  })];
}

function leaks() {
  const { says, found, suspects, more, alive } = data.leaks;
  const proven = found.map((leak) => section(leak.head, ...leak.lines.map((line) => element("p", {}, line)), element("pre", { tabindex: "0" }, leak.trace)));
  const summary = element("p", { class: "lines" }, says);
  const living = alive === null ? null : aliveTable(alive);
  if (suspects.length === 0) return [summary, ...proven, living];
  const suspected = suspects.map((suspect) => element("section", { class: "suspect" }, element("h3", {}, suspect.head), suspect.at === null ? null : element("pre", { tabindex: "0" }, "\tat " + suspect.at), element("p", {}, suspect.verdict)));
  return [summary, ...proven, section("Not proven, but alive", element("p", { class: "note" }, "what else lives, most bytes first, by the innermost frame of the application"), ...suspected, more > 0 ? element("p", { class: "note" }, grouped(more) + " places more with less") : null), living];
}

/** The tables of a tab that are no sums of events: who waits for whom, what lives. They are of the whole run. */
function factTables(tab) {
  return (data.facts ?? []).filter((of) => of.tab === tab).map(({ title, says, columns, rows }) => section(title, element("p", { class: "note" }, says), table(rows, columns.map(({ head, unit }, at) => {
    const of = (row) => row.cells[at];
    if (unit === null) return { head, isName: true, of, shown: of };
    return { head, isNumber: true, of, shown: (row) => (unit === "" ? grouped(of(row)) : human(of(row), unit)) };
  }), { by: columns.findIndex(({ unit }) => unit !== null), filter: (row) => row.cells.join(" "), details: (row) => element("pre", { tabindex: "0" }, row.trace) })));
}

/** What is alive by context, type and class of ages: nothing is proven of it. */
function aliveTable(alive) {
  const amount = (head, of) => ({ head, isNumber: true, of, shown: (row) => human(of(row), "bytes") });
  return section("Alive", element("p", { class: "note" }, alive.says), table(alive.rows, [
    { head: "Where", isName: true, of: (row) => row.at ?? "", shown: (row) => row.at ?? "outside of the application" },
    { head: "Type", isName: true, of: (row) => row.class, shown: (row) => row.class },
    { head: "Objects", isNumber: true, of: (row) => row.objects, shown: (row) => grouped(row.objects) },
    amount("Bytes", (row) => row.bytes),
    amount("Old", (row) => row.old_bytes),
    amount("Survived", (row) => row.survived_bytes),
    amount("New", (row) => row.new_bytes),
  ], { by: 3, filter: (row) => row.class + " " + (row.at ?? ""), details: (row) => element("pre", { tabindex: "0" }, row.trace) }));
}

/** Contexts whose innermost k frames are equal, together. */
function paths() {
  const sums = sumsOf(state.run);
  const total = sums.total * scaleOf(state.run);
  const groups = new Map();
  for (let node = 1; node < tree.size; node++) {
    if (sums.self[node] === 0) continue;
    const methods = [];
    for (let at = node; at > 0 && methods.length < state.k; at = tree.parent[at]) methods.push(tree.method[at]);
    const key = methods.join();
    const row = groups.get(key) || { methods, amount: 0, contexts: 0 };
    row.amount += sums.self[node] * scaleOf(state.run);
    row.contexts++;
    groups.set(key, row);
  }
  const choose = element("input", { type: "number", min: "1", max: "50", value: state.k, "aria-label": "Frames", onchange: () => set({ k: Math.max(1, Math.min(50, Number.parseInt(choose.value, 10) || 3)) }) });
  return [
    element("div", { class: "bar" }, element("label", {}, "Innermost frames ", choose), element("span", { class: "note" }, "contexts that end in the same calls, together")),
    table([...groups.values()].map((row) => ({ ...row, isLast: row.methods[0] === REST, isOwn: hasOwn && isOwn(row.methods[0]) })), [
      { head: "Path, innermost first", isName: true, of: (row) => methodName(row.methods[0]), shown: (row) => row.methods.map(methodName).join(" ← ") },
      amountColumn(), shareColumn(total),
      { head: "Stacks", isNumber: true, of: (row) => row.contexts, shown: (row) => grouped(row.contexts) },
    ], { by: 1, filter: (row) => row.methods.map(methodName).join(" ") }),
  ];
}

function flame() {
  const check = (key, text) => {
    const box = element("input", { type: "checkbox", onchange: () => set({ [key]: box.checked ? "yes" : "" }) });
    box.checked = state[key] === "yes";
    return element("label", {}, box, " " + text);
  };
  const weights = new Weights(sumsOf(state.difference && two ? 1 : state.run), state.difference && two ? sumsOf(0) : null);
  const options = { fold: state.fold === "yes", leaf: state.leaf === "yes", short: hasOwn && state.frames !== "all" };
  const matchesMethod = matcher();
  const search = pattern(state.search);
  const isSearch = state.search !== "" && search !== null;
  const matchesType = (type) => isSearch && search.test(typeName(type));
  const shared = {
    unit: unit(), difference: Boolean(state.difference && two), scale: { old: scaleOf(0), now: scaleOf(state.difference && two ? 1 : state.run) },
    matchesMethod, matchesType,
    matches: (box) => (isSearch ? (box.isMatch ??= isType(box) ? search.test(box.name) : box.methods().some(matchesMethod)) : null),
    self: (box, view) => (view.graph instanceof Down && typeof box.key === "number" ? box.now - view.list(box).reduce((sum, child) => sum + child.now, 0) : null),
    sandwich: (method) => set({ tab: "flame", method }),
    zoomed: () => {},
  };
  const views = [];
  const make = (title, graph, root) => {
    const view = new FlameView(title, graph, root, shared);
    views.push(view);
    return view.element;
  };
  open = { views, close: () => views.forEach((view) => view.close()), ready: () => views.forEach((view) => view.layout()) };
  const all = element("input", { type: "checkbox", onchange: toggleFrames });
  all.checked = !options.short;
  const bar = element("div", { class: "bar" }, hasOwn ? element("label", { title: "F" }, all, " all frames") : null, check("inverted", "inverted"), check("fold", "fold recursion"), check("leaf", "types as leaves"), two ? check("difference", "difference of both runs") : null,
    element("button", { type: "button", onclick: () => views[0].focus && typeof views[0].focus.key === "number" && views[0].focus.key !== REST && set({ method: views[0].focus.key }) }, "Callers and callees of the chosen box"),
    state.method >= 0 ? element("button", { type: "button", onclick: () => set({ method: -1 }) }, "Back to all") : null,
    element("span", { class: "note" }, `click or Enter zooms, Escape goes back, arrow keys walk, S callers and callees, C copies${hasOwn ? ", F folds libraries" : ""}`));
  if (state.difference && two) bar.append(element("span", { class: "more" }, "red: more than before"), element("span", { class: "less" }, "blue: less"));
  if (state.method >= 0) {
    const name = methodName(state.method);
    const [up, down] = [new Up(weights, options), new Down(weights, options)];
    return [bar, section("Callers of " + name, make("callers", up, up.rootOf(state.method))), section("Callees of " + name, make("callees", down, down.rootOf(state.method)))];
  }
  const graph = state.inverted === "yes" ? new Up(weights, options) : new Down(weights, options);
  return [bar, make(state.inverted === "yes" ? "inverted flame graph" : "flame graph", graph, graph.root()), restNote()];
}

/** Shows all frames of the flame graph and of traces, or folds runs of library frames. */
function toggleFrames() {
  if (state.tab !== "flame") {
    state.frames = isFolded() ? "all" : "";
    writeAddress();
    for (const drawTrace of traces) drawTrace();
    return;
  }
  const isFocused = document.activeElement?.tagName === "CANVAS";
  set({ frames: state.frames === "all" ? "" : "all" });
  if (isFocused) document.querySelector("#main canvas")?.focus({ preventScroll: true });
}

const changeGroup = () => (state.group === "" || OWN_GROUPS[state.group] && !hasOwn ? usualGroup() : state.group);

function changeRows() {
  const group = changeGroup();
  const [old, now] = [sumsOf(0), sumsOf(1)];
  const scales = [scaleOf(0), scaleOf(1)];
  if (group === "context" || group === "type") {
    const rows = new Map();
    for (let context = 0; context < contexts.node.length; context++) {
      const amounts = [old.byContext[context] * scales[0], now.byContext[context] * scales[1]];
      if (amounts[0] === 0 && amounts[1] === 0) continue;
      const key = group === "type" ? contexts.type[context] : context;
      const row = rows.get(key) || { context, name: group === "type" ? typeName(key) || "(rest, or no type)" : frameText(contexts.node[context]), old: 0, now: 0, isLast: group === "type" ? key < 0 : tree.method[contexts.node[context]] === REST, isOwn: group === "context" && hasOwn && isOwn(tree.method[contexts.node[context]]) };
      row.old += amounts[0];
      row.now += amounts[1];
      rows.set(key, row);
    }
    return [...rows.values()];
  }
  const rows = new Map();
  const byShares = { thread: byThread, tag: byTag, request: byRequest };
  if (byShares[group]) {
    [0, 1].forEach((run) => byShares[group](run).forEach((row) => {
      const known = rows.get(row.key) || { name: row.name, old: 0, now: 0, isLast: row.isLast };
      known[run === 0 ? "old" : "now"] = row.amount;
      rows.set(row.key, known);
    }));
    return [...rows.values()];
  }
  [old, now].forEach((sums, run) => byFrames(group, sums).forEach((row) => {
    const known = rows.get(row.key) || { name: row.name, old: 0, now: 0, isLast: row.isLast, isOwn: row.isOwn };
    known[run === 0 ? "old" : "now"] = (row.amount / (scaleOf(state.run) || 1)) * scales[run];
    rows.set(row.key, known);
  }));
  return [...rows.values()];
}

function difference() {
  const group = changeGroup();
  const choose = element("select", { "aria-label": "Difference by", onchange: () => set({ group: choose.value }) });
  fill(choose, [...groupNames(), ["context", "by context"], ["type", "by type"], ["thread", "by thread"], ...(hasRequests() ? [["request", "by request"]] : []), ...(hasTags() ? [["tag", "by tag"]] : [])], group);
  const change = (row) => row.now - row.old;
  const cell = (row) => element("span", { class: change(row) > 0 ? "more" : change(row) < 0 ? "less" : null }, (change(row) > 0 ? "+" : "") + human(change(row), unit()));
  const part = (row) => (row.old === 0 ? Infinity : change(row) / row.old);
  const isByContext = group === "context";
  return [
    element("div", { class: "bar" }, choose, element("button", { type: "button", onclick: () => set({ tab: "flame", difference: "yes" }) }, "As a flame graph")),
    table(changeRows(), [
      { head: "Name", isName: true, of: (row) => row.name, shown: (row) => row.name },
      { head: "Old " + amountHead().toLowerCase(), isNumber: true, of: (row) => row.old, shown: (row) => human(row.old, unit()) },
      { head: "New", isNumber: true, of: (row) => row.now, shown: (row) => human(row.now, unit()) },
      { head: "Change", isNumber: true, of: (row) => Math.abs(change(row)), shown: cell },
      { head: "Change in %", isNumber: true, of: part, shown: (row) => (row.old === 0 ? "new" : (part(row) > 0 ? "+" : "") + (100 * part(row)).toFixed(1) + "%") },
      ...(isByContext ? [typeColumn(), idColumn()] : []),
    ], { by: 3, filter: (row) => (isByContext ? `${row.name} ${typeName(contexts.type[row.context])} ${contexts.stack[row.context]}` : row.name), details: isByContext ? (row) => traceBox(row.context) : null }),
  ];
}

function timeLine() {
  const { start, width, count } = data.stream;
  const series = data.stream.kinds[state.kind];
  if (!series) return element("p", {}, "The stream has no events of this kind.");
  const amounts = measure() === "count" ? series.count : series.value;
  const canvas = element("canvas", { tabindex: "0", role: "img", "aria-label": `${kind().name} over time in ${count} steps of ${human(width, "ns")}` });
  const heat = element("canvas", { role: "img", "aria-label": "heat map: columns are seconds, rows are parts of a second" });
  const at = (bucket) => human(start + bucket * width, "ns");
  const from = element("input", { type: "number", min: "0", max: String(count - 1), value: Math.max(0, state.from), "aria-label": "from step" });
  const to = element("input", { type: "number", min: "0", max: String(count - 1), value: state.to < 0 ? count - 1 : state.to, "aria-label": "to step" });
  const choose = () => set({ from: Math.min(from.valueAsNumber || 0, to.valueAsNumber || 0), to: Math.max(from.valueAsNumber || 0, to.valueAsNumber || 0) });
  from.addEventListener("change", choose);
  to.addEventListener("change", choose);
  let pressed = null;
  const bucketOf = (event) => Math.max(0, Math.min(count - 1, Math.floor(((event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth) * count)));
  canvas.addEventListener("mousedown", (event) => { pressed = bucketOf(event); });
  canvas.addEventListener("mouseup", (event) => {
    if (pressed === null) return;
    const end = bucketOf(event);
    set({ from: Math.min(pressed, end), to: Math.max(pressed, end) });
  });
  canvas.addEventListener("mousemove", (event) => tip.show(`${at(bucketOf(event))}: ${human(amounts[bucketOf(event)], unit())}`, event));
  canvas.addEventListener("mouseleave", () => tip.hide());
  const ready = () => {
    drawSeries(canvas, amounts, state.from, state.to, at);
    drawHeat(heat, amounts, width, start);
  };
  open = { close: () => tip.hide(), ready };
  const chosen = state.from >= 0 ? `chosen: ${at(state.from)} to ${at(state.to + 1)}; flame graph, methods, contexts, types and k-contexts show these events` : `a step is ${human(width, "ns")}: drag over the time line, or type steps, to choose a part`;
  return [
    element("div", { class: "bar" }, element("label", {}, "From step ", from), element("label", {}, "to ", to), state.from >= 0 ? element("button", { type: "button", onclick: () => set({ from: -1, to: -1 }) }, "All") : null, element("button", { type: "button", onclick: () => set({ tab: "flame" }) }, "Flame graph of it"), element("span", { class: "note" }, chosen)),
    canvas, section("Heat map", element("p", { class: "note" }, `a column is a second, from second ${Math.floor(start / 1e9)} on; a row is a part of it, the second's beginning on top; ${isDark() ? "brighter" : "darker"} is more`), heat),
  ];
}

function prepare(canvas, height) {
  const wide = Math.max(200, canvas.parentElement.clientWidth - 32);
  const ratio = devicePixelRatio || 1;
  canvas.width = wide * ratio;
  canvas.height = height * ratio;
  canvas.style.width = wide + "px";
  canvas.style.height = height + "px";
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return [pen, wide];
}

function largest(amounts) {
  return amounts.reduce((most, amount) => Math.max(most, amount), 1);
}

function drawSeries(canvas, amounts, from, to, at) {
  const [pen, wide] = prepare(canvas, 178);
  const most = largest(amounts);
  amounts.forEach((amount, bucket) => {
    const high = (150 * amount) / most;
    pen.fillStyle = from >= 0 && (bucket < from || bucket > to) ? (isDark() ? "#4a4b4d" : "#cfcec8") : isDark() ? "#6db3f2" : "#0b62a8";
    pen.fillRect((bucket * wide) / amounts.length, 158 - high, Math.max(0.5, wide / amounts.length - 0.2), high);
  });
  pen.fillStyle = isDark() ? "#a5a49d" : "#63635e";
  pen.font = "12px system-ui, sans-serif";
  pen.fillText(`${human(most, unit())} in a step`, 4, 11);
  const marks = Math.max(1, Math.min(8, Math.floor(wide / 120)));
  for (let mark = 0; mark <= marks; mark++) {
    const x = (mark * wide) / marks;
    pen.textAlign = mark === 0 ? "left" : mark === marks ? "right" : "center";
    pen.fillText(at((mark * amounts.length) / marks), x, 174);
  }
}

function drawHeat(canvas, amounts, width, start) {
  const rows = Math.max(1, Math.min(50, Math.round(1e9 / width)));
  const steps = Math.max(1, Math.round(1e9 / width / rows));
  const first = Math.floor(start / width);
  const columns = Math.ceil((amounts.length + first) / (rows * steps));
  const [pen, wide] = prepare(canvas, Math.max(40, rows * 5));
  const sums = new Map();
  amounts.forEach((amount, bucket) => {
    const cell = Math.floor((bucket + first) / steps);
    sums.set(cell, (sums.get(cell) || 0) + amount);
  });
  const most = largest([...sums.values()]);
  const cellWide = Math.min(24, wide / columns);
  for (const [cell, amount] of sums) {
    const strength = Math.sqrt(amount / most);
    pen.fillStyle = isDark() ? `hsl(20 80% ${Math.round(12 + 50 * strength)}%)` : `hsl(20 85% ${Math.round(96 - 56 * strength)}%)`;
    pen.fillRect(Math.floor(cell / rows) * cellWide, (cell % rows) * 5, Math.max(0.5, cellWide - 0.5), 4.5);
  }
}

for (const id of ["kind", "run", "per", "thread", "tag", "request"]) {
  const select = document.getElementById(id);
  select.addEventListener("change", () => set({ [id]: Number.parseInt(select.value, 10), ...(id === "kind" ? { measure: "" } : {}) }));
}
document.getElementById("measure").addEventListener("change", (event) => set({ measure: event.target.value }));
let waiting = 0;
document.getElementById("search").addEventListener("input", (event) => {
  clearTimeout(waiting);
  waiting = setTimeout(() => set({ search: event.target.value }), 150);
});
document.getElementById("theme").addEventListener("click", () => set({ theme: isDark() ? "light" : "dark" }));
document.getElementById("search").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  if (event.target.value === state.search) stepMatch(event.shiftKey ? -1 : 1);
  else {
    clearTimeout(waiting);
    set({ search: event.target.value });
  }
});
document.getElementById("next").addEventListener("click", () => stepMatch(1));
document.getElementById("previous").addEventListener("click", () => stepMatch(-1));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName)) return;
  const acts = {
    "/": () => document.getElementById("search").focus(),
    n: () => stepMatch(1),
    N: () => stepMatch(-1),
    f: () => hasOwn && toggleFrames(),
  };
  if (!Object.hasOwn(acts, event.key)) return;
  event.preventDefault();
  acts[event.key]();
});
addEventListener("hashchange", () => {
  Object.assign(state, initial, stateOfUrl());
  draw();
});
draw();
if (isLive) goLive();
