// The page of `lucce view` in Chromium: every tab, search, zoom, keyboard, hostile names, and sums that are
// those of `lucce report --json`. `cargo xtask page-tests` starts it with these in the environment:
//   PAGES     a folder with one.html, two.html (of two runs), changed.html (of `lucce diff --html`, by type, per lock), leaks.html (of a run whose objects were followed), tags.html (of a
//             program that opens tags), facts.html (of locks, threads, classes and named methods), one.json, one-lock.json, tags.json, facts-KIND.json (reports
//             of these runs, the third one by tag) and two.json (`lucce diff`)
//   CHROMIUM  the browser
//   PLAYWRIGHT  where playwright-core is installed
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";

const { PAGES, CHROMIUM, PLAYWRIGHT } = process.env;
const { chromium } = createRequire(PLAYWRIGHT + "/")("playwright-core");
const read = (name) => JSON.parse(readFileSync(`${PAGES}/${name}.json`, "utf8"));
const reports = { one: read("one"), "one-lock": read("one-lock"), tags: read("tags") };
const report = (name) => reports[name];
const diff = read("two");
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

let browser;
let context;
let page;
const wrong = [];

before(async () => {
  browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  page = await context.newPage();
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("console", (message) => { if (message.type() === "error") wrong.push(`console: ${message.text()}`); });
  page.on("dialog", async (dialog) => { wrong.push(`dialog: ${dialog.message()}`); await dialog.dismiss(); });
  page.on("request", (request) => { if (!request.url().startsWith("file:")) wrong.push(`request: ${request.url()}`); });
});

after(async () => {
  await browser?.close();
});

async function open(name, fragment = "") {
  await page.goto("about:blank");
  await page.goto(`file://${PAGES}/${name}.html${fragment}`);
}

const tab = (name) => page.getByRole("tab", { name, exact: true });
const inPage = (code) => page.evaluate(code);
const status = () => page.locator("#status").textContent();

describe("a page of one run", () => {
  test("opens with its sums, which are those of the report", async () => {
    await open("one");
    const { totals } = report("one");
    const alloc = await inPage(`data.kinds.find((kind) => kind.name === "alloc")`);
    assert.equal(alloc.count[0], totals.count);
    assert.equal(alloc.value[0], totals.value);
    assert.equal(await inPage(`sumsOf(0).total`), totals.value);
    assert.equal(await inPage(`new Sums(new Selection({ kind: state.kind, measure: "count", run: 0, thread: -1 }), 0).total`), totals.count);
    const lock = report("one-lock");
    const shown = await inPage(`data.kinds.find((kind) => kind.name === "lock")`);
    assert.equal(shown.value[0], lock.totals.value);
    await page.getByText("What was counted").waitFor();
  });

  test("has all contexts, with the report's numbers, sums and traces", async () => {
    const contexts = report("one").contexts;
    const shown = await inPage(`(() => {
      const sums = sumsOf(0).byContext;
      return contexts.number.map((number, at) => ({ number, at, value: sums[at], kind: contexts.kind[at] })).filter((row) => row.kind === state.kind && row.number !== "" && row.value > 0);
    })()`);
    const known = new Map(shown.map((row) => [row.number, row]));
    // The report tells two calls in one line apart; a page shows what can be read.
    const textOf = (row) => JSON.stringify([row.class, row.frames]);
    const sums = new Map();
    for (const row of contexts) sums.set(textOf(row), (sums.get(textOf(row)) || 0) + row.value);
    let exact = 0;
    for (const row of contexts) {
      const own = known.get(row.id);
      if (own && row.value > 0) {
        exact++;
        assert.equal(own.value, sums.get(textOf(row)), row.id);
      }
    }
    const rest = await inPage(`data.rest.contexts`);
    assert.ok(exact > 100, `${exact} contexts are shown`);
    const first = contexts[0];
    const trace = await inPage(`traceText(contexts.node[contexts.number.indexOf(${JSON.stringify(first.id)})])`);
    assert.equal(trace.split("\n").length, first.frames.length);
    assert.ok(trace.startsWith(`\tat ${first.frames[0].class}.${first.frames[0].method}(`), trace);
    assert.ok(rest >= 0);
  });

  test("shows something in every tab", async () => {
    await open("one");
    for (const name of ["Overview", "Flame", "Methods", "Contexts", "Types", "Threads", "Waits", "k-contexts", "Time line"]) {
      await tab(name).click();
      assert.equal(await tab(name).getAttribute("aria-selected"), "true");
      assert.ok((await page.locator("#main").innerText()).length > 20, name);
    }
  });

  test("finds what is searched for, with its sum", async () => {
    await open("one", "#tab=flame");
    await page.keyboard.press("/");
    await page.keyboard.type("Shop\\.tree");
    await page.locator("#matched", { hasText: "%" }).waitFor();
    const expected = report("one").contexts.filter((row) => row.frames.some((frame) => /Shop\.tree/i.test(frame.class + "." + frame.method)));
    const sum = expected.reduce((sum, row) => sum + row.value, 0);
    const share = ((100 * sum) / report("one").totals.value).toFixed(2) + "%";
    assert.ok((await page.locator("#matched").textContent()).includes(share), `${await page.locator("#matched").textContent()} has ${share}`);
    assert.ok((await inPage(`location.hash`)).includes("search=Shop"));
  });

  test("zooms by mouse and keyboard, and back", async () => {
    await open("one", "#tab=flame");
    const canvas = page.locator("canvas").first();
    await canvas.focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    const below = await inPage(`state.tab`) && (await status());
    assert.match(below, /% of all/);
    await page.keyboard.press("Enter");
    await page.waitForTimeout(300);
    await page.keyboard.press("Escape");
    assert.match(await status(), /^all: /);
    const box = await canvas.boundingBox();
    await page.mouse.click(box.x + 40, box.y + 18 * 3 + 9);
    await page.waitForTimeout(300);
    assert.doesNotMatch(await status(), /^all: /);
  });

  test("shows callers and callees of a method, inverted, folded, with types", async () => {
    const method = await inPage(`(() => { for (let at = 0; at < data.methods.name.length; at++) if (methodName(at) === "Shop.tree") return at; })()`);
    await open("one", `#tab=flame&method=${method}`);
    await page.getByText("Callers of Shop.tree").waitFor();
    await page.getByText("Callees of Shop.tree").waitFor();
    assert.equal(await page.locator("canvas").count(), 2);
    const whole = report("one").contexts.filter((row) => row.frames.some((frame) => frame.class === "Shop" && frame.method === "tree")).reduce((sum, row) => sum + row.value, 0);
    assert.equal(await inPage(`new Down(new Weights(sumsOf(0), null), {}).rootOf(${method}).now`), whole);
    for (const changes of ["inverted=yes", "inverted=yes&leaf=yes", "leaf=yes", "fold=yes"]) {
      await open("one", `#tab=flame&${changes}`);
      await page.locator("canvas").first().waitFor();
      const children = await inPage(`(() => {
        const options = { fold: state.fold === "yes", leaf: state.leaf === "yes" };
        const graph = state.inverted === "yes" ? new Up(new Weights(sumsOf(0), null), options) : new Down(new Weights(sumsOf(0), null), options);
        return graph.children(graph.root()).reduce((sum, box) => sum + box.now, 0);
      })()`);
      assert.equal(children, report("one").totals.value, changes);
    }
  });

  test("copies a context's whole trace", async () => {
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await open("one", "#tab=contexts");
    await page.locator("td button.link").first().click();
    await page.getByRole("button", { name: "Copy", exact: true }).click();
    await page.waitForFunction(() => document.getElementById("status").textContent === "copied");
    const whole = await inPage(`traceText(contexts.node[contexts.number.indexOf(document.querySelector("dd").textContent)])`);
    assert.ok((await inPage(`navigator.clipboard.readText()`)).endsWith("\n" + whole));
    await page.getByRole("button", { name: "All frames", exact: true }).click();
    assert.equal(await page.locator("pre").innerText(), whole);
  });

  test("keeps its state in the URL", async () => {
    await open("one", "#tab=methods&group=package&theme=dark");
    assert.equal(await tab("Methods").getAttribute("aria-selected"), "true");
    assert.ok(await inPage(`isDark()`));
    assert.equal(await page.getByLabel("Sums by").inputValue(), "package");
    await page.locator("#kind").selectOption({ label: "lock" });
    assert.match(await inPage(`location.hash`), /kind=/);
  });

  test("shows the events of a part of the time", async () => {
    await open("one", "#tab=time&from=0&to=0");
    const part = await inPage(`sumsOf(0).total`);
    const all = await inPage(`data.stream.kinds[state.kind].value.reduce((sum, value) => sum + value, 0)`);
    assert.equal(part, await inPage(`data.stream.kinds[state.kind].value[0]`));
    assert.equal(all, report("one").totals.value);
  });

  test("says which tabs are of the whole run while a part of the time is chosen", async () => {
    await open("one", "#tab=threads");
    await page.locator("#thread").selectOption({ index: 1 });
    await inPage(`set({ from: 0, to: 0 })`);
    assert.equal(await inPage(`state.thread`), -1);
    assert.ok(await page.locator("#thread").isDisabled());
    await page.getByText("of the whole run").waitFor();
    await tab("Flame").click();
    assert.equal(await page.getByText("of the whole run").count(), 0);
  });

  test("has waits that add up, those of idle threads in one line", async () => {
    await open("one", "#tab=waits");
    const row = page.locator("section", { has: page.getByRole("heading", { name: "lock", exact: true }) }).locator("tbody tr");
    const names = await row.locator("td.name").allInnerTexts();
    const lock = `data.kinds.findIndex((kind) => kind.name === "lock")`;
    const hasIdle = await inPage(`contexts.kind.some((kind, at) => kind === ${lock} && isIdle[at] === 1)`);
    assert.equal(names.filter((name) => name.startsWith("(idle")).length, hasIdle ? 1 : 0, names.join());
    const times = await row.locator("td:nth-child(3)").allInnerTexts();
    assert.equal(times.reduce((sum, text) => sum + Number(text.replaceAll(",", "")), 0), await inPage(`data.kinds[${lock}].count[0]`));
  });

  test("leaves out threads that wait for work, as the report does, and says so", async () => {
    await open("one");
    await page.locator("#kind").selectOption({ label: "lock" });
    // Any context stands for those in which pools wait.
    const { all, idle } = await inPage(`(() => {
      const all = data.kinds[state.kind].value[0];
      data.contexts.idle = [contexts.kind.findIndex((kind, at) => kind === state.kind && sumsOf(0).byContext[at] > 0)];
      take(data);
      cached = { key: "", sums: [], kinds: [] };
      draw();
      return { all, idle: idleAmount(0) };
    })()`);
    assert.ok(idle > 0, "nothing is idle");
    for (const name of ["Overview", "Flame", "Methods", "Contexts", "Types", "Threads", "k-contexts"]) {
      await tab(name).click();
      await page.getByText("without idle threads, which wait for work").waitFor();
      assert.equal(await inPage(`sumsOf(0).total`), all - idle, name);
    }
    assert.equal(await inPage(`byThread().reduce((sum, row) => sum + row.amount, 0)`), all - idle);
    await tab("Overview").click();
    assert.equal(await inPage(`countedOf(state.kind, 0).value`), all - idle);
    await page.getByRole("button", { name: "Count them, too" }).click();
    assert.equal(await inPage(`sumsOf(0).total`), all);
    assert.match(await inPage(`location.hash`), /idle=yes/);
    await page.getByRole("button", { name: "Leave them out" }).click();
    assert.equal(await inPage(`sumsOf(0).total`), all - idle);
  });

  test("opens whatever its address says", async () => {
    for (const key of ["__proto__", "constructor", "toString", "nothing"]) {
      await open("one", `#${key}=1`);
      await page.getByText("What was counted").waitFor();
    }
  });

  const ownText = (frame) => `${frame.class}.${frame.method}(${frame.file}:${frame.line})`;
  const sumBy = (keyOf) => {
    const sums = new Map();
    for (const row of report("one").contexts) sums.set(keyOf(row.frames), (sums.get(keyOf(row.frames)) || 0) + row.value);
    return Object.fromEntries([...sums].sort());
  };
  const NO_OWN = "(no own code)";

  test("sums by own line and by entry as the report's frames say", async () => {
    await open("one");
    const rows = (group) => inPage(`Object.fromEntries(byOwnCode("${group}").map((row) => [row.name, row.amount]).sort())`);
    assert.ok(report("one").contexts.some(({ frames }) => frames.some((frame) => frame.own) && !frames[0].own), "no event in a library");
    const line = (frames) => { const own = frames.find((frame) => frame.own); return own ? ownText(own) : NO_OWN; };
    assert.deepEqual(Object.entries(await rows("own")).sort(), Object.entries(sumBy(line)).sort());
    const entry = (frames) => { const own = frames.findLast((frame) => frame.own); return own ? `${own.class}.${own.method}` : NO_OWN; };
    assert.deepEqual(Object.entries(await rows("entry")).sort(), Object.entries(sumBy(entry)).sort());
    await page.getByRole("heading", { name: "Own lines: alloc" }).waitFor();
    await open("one", "#tab=methods");
    assert.equal(await page.getByLabel("Sums by").inputValue(), "own");
    await open("one", "#tab=methods&group=entry");
    assert.equal(await page.getByLabel("Sums by").inputValue(), "entry");
    assert.equal(await page.locator("#main tbody tr.own").count(), Object.keys(sumBy(entry)).filter((name) => name !== NO_OWN).length);
  });

  test("has the heaviest own lines on the first screen", async () => {
    await page.setViewportSize({ width: 1280, height: 720 });
    for (const kind of ["alloc", "lock"]) {
      await open("one", `#kind=${kind}`);
      const [most] = await inPage(`byOwnCode("own").filter((row) => row.isOwn).sort((a, b) => b.amount - a.amount)`);
      const row = page.locator(`tr.own [title="${most.name}"]`).first();
      const box = await row.boundingBox();
      assert.ok(box.y >= 0 && box.y + box.height <= 720, `${kind}: ${most.name} at ${box.y}`);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  // Own frames and the event's frame; a run of other frames between them is one step if there are several.
  function shortened(frames) {
    const steps = [];
    let run = [];
    const endRun = () => {
      steps.push(...(run.length > 1 ? ["run"] : run));
      run = [];
    };
    const outermostFirst = frames.toReversed();
    outermostFirst.forEach((frame, at) => {
      const name = `${frame.class}.${frame.method}`;
      if (!frame.own && at < outermostFirst.length - 1) return run.push(name);
      endRun();
      return steps.push(name);
    });
    return steps.join(" ");
  }

  test("folds library frames: each path has the report's sum", async () => {
    await open("one", "#tab=flame");
    const walk = (graph, options) => inPage(`(() => {
      const graph = new ${graph}(new Weights(sumsOf(0), null), ${options});
      const sums = {};
      const visit = (box, path) => {
        const list = graph.children(box);
        const own = box.now - list.reduce((sum, child) => sum + child.now, 0);
        if (own > 0 && path.length > 0) sums[path.join(" ")] = own;
        for (const child of list) visit(child, [...path, child.isSeveral ? child.key : child.name]);
      };
      visit(graph.root(), []);
      return sums;
    })()`);
    const expected = sumBy(shortened);
    assert.ok(Object.keys(expected).some((path) => / run /.test(path)), "nothing is folded");
    assert.deepEqual(Object.entries(await walk("Down", "{ short: true }")).sort(), Object.entries(expected).sort());
    const total = Object.values(await walk("Up", "{ short: true }")).reduce((sum, one) => sum + one, 0);
    assert.equal(total, report("one").totals.value);
  });

  test("unfolds library frames by one key, and its address says so", async () => {
    await open("one", "#tab=flame");
    const boxes = () => inPage(`(() => { const [view] = open.views; const visit = (box) => [box.isSeveral ? 1 : 0, ...view.list(box).flatMap(visit)]; return visit(view.root); })()`);
    const folded = await boxes();
    assert.ok(folded.includes(1));
    await page.locator("canvas").first().focus();
    await page.keyboard.press("f");
    assert.match(await inPage(`location.hash`), /frames=all/);
    assert.ok(await inPage(`document.activeElement.tagName === "CANVAS"`));
    const all = await boxes();
    assert.ok(!all.includes(1) && all.length > folded.length);
    await open("one", "#tab=flame&frames=all");
    assert.ok(await page.getByLabel("all frames").isChecked());
    await page.keyboard.press("f");
    assert.doesNotMatch(await inPage(`location.hash`), /frames=all/);
    assert.equal((await boxes()).length, folded.length);
  });

  test("folds nothing where own code cannot be told from other code", async () => {
    await open("one", "#tab=flame");
    await inPage(`(() => { data.classOrigins = "l".repeat(data.classes.length); take(data); cached = { key: "", sums: [], kinds: [] }; draw(); })()`);
    assert.equal(await page.getByLabel("all frames").count(), 0);
    assert.ok(await inPage(`(() => { const [view] = open.views; const visit = (box) => view.list(box).every((child) => !child.isSeveral && visit(child)); return visit(view.root); })()`));
    await tab("Overview").click();
    assert.equal(await page.getByRole("heading", { name: "Own lines" }).count(), 0);
  });

  test("folds a way without branches into one box", async () => {
    await open("one", "#tab=flame&thread=one%20way");
    const names = await inPage(`(() => { const [view] = open.views; const [first] = view.list(view.root); return [first.key, first.name, view.list(first).map((box) => box.name), first.now, view.root.now]; })()`);
    assert.equal(names[0], "trunk");
    assert.match(names[1], / … Shop\.second \(\d calls\)$/);
    assert.deepEqual(names[2], ["Shop.third"]);
    assert.equal(names[3], names[4]);
    assert.ok(names[4] > 0);
  });

  test("has own code in a colour of its own", async () => {
    await open("one", "#tab=flame&frames=all");
    const colours = (own) => inPage(`(() => { const [view] = open.views; const found = new Set(); const visit = (box) => { for (const child of view.list(box)) { if (typeof child.key === "number" && isOwn(child.key) === ${own}) found.add(Number(view.colour(child, false, false).match(/hsl\\((\\d+)/)[1])); visit(child); } }; visit(view.root); return [...found]; })()`);
    const [own, other] = [await colours(true), await colours(false)];
    assert.ok(own.length > 0 && own.every((hue) => hue < 60), own.join());
    assert.ok(other.length > 0 && other.every((hue) => hue > 200 && hue < 240), other.join());
  });

  test("goes to the first match, the next and the one before, in the flame graph", async () => {
    await open("one", "#tab=flame");
    await page.keyboard.press("/");
    await page.keyboard.type("Shop.tree");
    const position = page.locator("#position");
    await position.filter({ hasText: /^1 of / }).waitFor();
    const focus = () => inPage(`(() => { const [view] = open.views; const { scrollTop, clientHeight } = view.element; const y = view.focus.depth * ROW; const rect = view.rects.find((rect) => rect.box === view.focus); return { name: view.focus.name, depth: view.focus.depth, size: view.focus.size, isSeen: y >= scrollTop && y + ROW <= scrollTop + clientHeight, width: rect ? rect.w : 0 }; })()`);
    const first = await focus();
    assert.ok(first.name === "Shop.tree" && first.isSeen && first.width >= 60, JSON.stringify(first));
    assert.equal(await page.locator("#search").evaluate((input) => input === document.activeElement), true);
    await page.keyboard.press("Enter");
    await position.filter({ hasText: /^2 of / }).waitFor();
    await page.locator("#search").blur();
    const count = Number((await position.textContent()).split(" of ")[1]);
    assert.ok(count >= 12, `${count} levels of recursion`);
    for (let at = 3; at <= 12; at++) await page.keyboard.press("n");
    await position.filter({ hasText: /^12 of / }).waitFor();
    const later = await focus();
    assert.ok(later.name === "Shop.tree" && later.isSeen && later.width >= 60 && later.size <= first.size, JSON.stringify(later));
    await page.keyboard.press("Shift+N");
    await position.filter({ hasText: /^11 of / }).waitFor();
    await page.locator("#next").click();
    await position.filter({ hasText: /^12 of / }).waitFor();
    // Deep boxes are scrolled to.
    await open("one", "#tab=flame&frames=all&search=" + encodeURIComponent("Shop\\$Order.<init>"));
    const deep = await focus();
    assert.ok(deep.name === "Shop$Order.<init>" && deep.isSeen, JSON.stringify(deep));
  });

  test("goes through the rows of a table that match, beyond those that are seen", async () => {
    await open("one", "#tab=contexts&search=Shop");
    const position = page.locator("#position");
    const count = Number((await position.textContent()).split(" of ")[1]);
    assert.ok(count > 40, `${count} rows`);
    const current = page.locator("#main tr[aria-current]");
    for (let at = 1; at < 40; at++) await page.keyboard.press("n");
    await position.filter({ hasText: /^40 of / }).waitFor();
    assert.equal(await current.count(), 1);
    const box = await current.boundingBox();
    assert.ok(box.y >= 0 && box.y + box.height <= 900, JSON.stringify(box));
    assert.equal(await current.evaluate((row) => [...row.parentElement.children].indexOf(row)), 39);
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("#main tr[data-details]").count(), 1);
    // The search is the same in each tab.
    await tab("Methods").click();
    for (const name of await page.locator("#main tbody td.name").allInnerTexts()) assert.match(name, /Shop/i);
  });

  test("has the threads of a pool in one row", async () => {
    await open("one", "#tab=threads&kind=alloc");
    const single = await inPage(`(() => { const sums = {}; shares.context.forEach((context, at) => { if (contexts.kind[context] === state.kind) sums[data.threads[shares.thread[at]]] = (sums[data.threads[shares.thread[at]]] || 0) + shares.value[at]; }); return sums; })()`);
    const members = Object.entries(single).filter(([name]) => name.startsWith("pool-1-thread-"));
    assert.equal(members.length, 2);
    const whole = members.reduce((sum, [, value]) => sum + value, 0);
    const rows = await inPage(`byThread().map((row) => [row.name, row.amount])`);
    assert.deepEqual(rows.filter(([name]) => name.startsWith("pool-")), [["pool-1-thread-*", whole]]);
    await page.getByRole("button", { name: "pool-1-thread-*", exact: true }).click();
    await page.getByRole("button", { name: "pool-1-thread-7", exact: true }).waitFor();
    await page.getByRole("button", { name: "Flame graph of these threads" }).click();
    assert.equal(await inPage(`sumsOf(0).total`), whole);
    assert.match(await inPage(`location.hash`), /thread=pool-1-thread-\*/);
    await open("one", "#tab=flame&thread=pool-1-thread-7");
    assert.equal(await inPage(`sumsOf(0).total`), single["pool-1-thread-7"]);
  });

  test("has what is too small to be shown one by one last", async () => {
    await open("one", "#tab=methods&group=method");
    // The heaviest leaf stands for such a sum.
    const name = await inPage(`(() => {
      const sums = sumsOf(0);
      const isUsed = new Set(data.nodes.parent);
      const leaf = [...tree.method.keys()].filter((node) => node > 0 && !isUsed.has(node)).sort((a, b) => sums.whole[b] - sums.whole[a])[0];
      data.nodes.method[leaf] = -1;
      take(data);
      cached = { key: "", sums: [], kinds: [] };
      draw();
      return methodName(tree.method[leaf]);
    })()`);
    assert.equal(name, "(rest)");
    for (const head of [0, 1, 3]) {
      await page.locator("th button").nth(head).click();
      await inPage(`while (!document.querySelector("#main button[data-more]").hidden) document.querySelector("#main button[data-more]").click()`);
      const names = await page.locator("#main tbody td.name").allInnerTexts();
      assert.equal(names.indexOf("(rest)"), names.length - 1);
    }
    const lasts = await inPage(`(() => { const graph = new Down(new Weights(sumsOf(0), null), {}); const found = []; const visit = (box) => { const list = graph.children(box); const at = list.findIndex((child) => child.key === REST); if (at >= 0) found.push([at, list.length]); list.forEach(visit); }; visit(graph.root()); return found; })()`);
    assert.ok(lasts.length === 1 && lasts[0][0] === lasts[0][1] - 1, JSON.stringify(lasts));
  });

  test("says that a search is no regular expression", async () => {
    await open("one", "#tab=methods");
    const filter = page.locator("#search");
    const rows = () => page.locator("#main tbody tr").count();
    const all = await rows();
    await filter.fill("Shop\\.");
    await page.getByText("rows that match").waitFor();
    assert.ok((await rows()) < all);
    assert.equal(await page.getByText("no regular expression").count(), 0);
    await filter.fill("Shop(");
    await page.getByText(/^no regular expression, so nothing is left out: \d+ of [\d,]+ rows$/).waitFor();
    assert.equal(await filter.getAttribute("aria-invalid"), "true");
    assert.equal(await rows(), all);
    await filter.fill("");
    await page.waitForFunction(() => !document.body.innerText.includes("no regular expression"));
  });

  test("has the heads of its tables on paper, too", async () => {
    await page.emulateMedia({ media: "print" });
    await open("one", "#tab=methods");
    assert.ok((await page.locator("th button").count()) > 2);
    for (const head of await page.locator("th button").all()) assert.ok(await head.isVisible());
    assert.equal(await page.getByRole("button", { name: "Show more" }).count(), 0);
    await page.emulateMedia({ media: null });
  });

  test("fits into a narrow window in every tab", async () => {
    await page.setViewportSize({ width: 420, height: 800 });
    for (const name of ["overview", "flame", "methods", "contexts", "types", "threads", "waits", "paths", "time"]) {
      await open("one", `#tab=${name}`);
      assert.ok((await inPage(`document.documentElement.scrollWidth - innerWidth`)) <= 0, name);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  test("walks through tabs by keyboard alone", async () => {
    await open("one");
    await tab("Overview").focus();
    await page.keyboard.press("ArrowRight");
    assert.equal(await tab("Flame").getAttribute("aria-selected"), "true");
    assert.equal(await inPage(`document.activeElement.textContent`), "Flame");
  });
});

describe("a page of two runs", () => {
  test("opens on the difference, by own line", async () => {
    await open("two");
    assert.equal(await tab("Difference").getAttribute("aria-selected"), "true");
    assert.equal(await page.getByLabel("Difference by").inputValue(), "own");
    const rows = await inPage(`changeRows().map((row) => row.now).reduce((sum, one) => sum + one, 0)`);
    assert.equal(rows, await inPage(`sumsOf(1).total`));
  });

  test("shows the difference, by context and by method, and as a flame graph", async () => {
    await open("two", "#tab=difference&group=method");
    const rows = await inPage(`changeRows().filter((row) => row.name === "Shop.tree")`);
    assert.equal(rows.length, 1);
    assert.ok(rows[0].now > rows[0].old * 2.5, JSON.stringify(rows));
    const change = await inPage(`(() => { state.group = "context"; return changeRows().reduce((sum, row) => sum + row.now - row.old, 0); })()`);
    assert.equal(change, await inPage(`sumsOf(1).total - sumsOf(0).total`));
    const byThreads = await inPage(`(() => { state.group = "thread"; return changeRows().reduce((sum, row) => sum + row.now - row.old, 0); })()`);
    assert.equal(byThreads, change);
    await open("two", "#tab=flame&difference=yes");
    await page.getByText("red: more than before").waitFor();
  });

  test("shows type and content id of what differs, as the command does", async () => {
    await open("two", "#tab=difference&group=context");
    const heads = await page.locator("th button").allInnerTexts();
    assert.deepEqual(heads.slice(-2), ["Type", "Content id"]);
    const cells = await page.locator("#main tbody tr").first().locator("td").allInnerTexts();
    const row = diff.rows.find((row) => row.stack === cells.at(-1) && row.name === cells.at(-2));
    assert.ok(row, cells.join());
    // An id finds its rows.
    await page.locator("#search").fill(row.stack);
    await page.getByText("rows that match").waitFor();
    const ids = await page.locator("#main tbody tr td:last-child").allInnerTexts();
    assert.ok(ids.length >= 1 && ids.every((id) => id === row.stack), ids.join());
    await open("two", "#tab=difference&group=method");
    assert.ok(!(await page.locator("th button").allInnerTexts()).includes("Content id"));
  });

  test("colours small changes so that they are seen", async () => {
    await open("two", "#tab=flame&difference=yes");
    for (const dark of [false, true]) {
      const coloured = (old, now) => inPage(`Number(colourOfChange((${now} - ${old}) / (${now} + ${old}), ${dark}, false).split(" ")[1].slice(0, -1))`);
      assert.ok((await coloured(100, 103)) >= 30, `${dark}: 3%`);
      assert.ok((await coloured(100, 148)) >= 70, `${dark}: 48%`);
      assert.equal(await coloured(100, 100), 0);
    }
  });

  test("opens at what was asked for", async () => {
    await open("changed");
    assert.equal(await tab("Difference").getAttribute("aria-selected"), "true");
    assert.equal(await page.getByLabel("Difference by").inputValue(), "type");
    assert.equal(await inPage(`data.kinds[state.per].name`), "lock");
    assert.equal(await inPage(`location.hash`), "");
    await tab("Overview").click();
    assert.match(await inPage(`location.hash`), /tab=overview/);
    // Types are no part of a stack: the sums over stacks are by own line then.
    await tab("Methods").click();
    assert.equal(await page.getByLabel("Sums by").inputValue(), "own");
    assert.ok((await page.locator("#main tbody tr").count()) > 1);
  });

  test("tells amounts per event of another kind", async () => {
    await open("two", "#tab=difference&group=method");
    const lock = await inPage(`data.kinds.findIndex((kind) => kind.name === "lock")`);
    await page.locator("#per").selectOption(String(lock));
    const row = await inPage(`changeRows().find((row) => row.name === "Shop.tree")`);
    const counts = await inPage(`data.kinds[${lock}].count`);
    assert.ok(counts[0] > 0 && counts[1] > 0);
    assert.ok(row.now > 0 && row.now < await inPage(`sumsOf(1).total`) / counts[1] + 1);
  });
});

describe("a page of a run whose objects were followed", () => {
  test("opens there, and says in words that no event was counted", async () => {
    await open("leaks");
    assert.equal(await tab("Leaks").getAttribute("aria-selected"), "true");
    assert.deepEqual(await page.locator("#kind option").allInnerTexts(), ["none"]);
    for (const name of ["Overview", "Flame", "Methods", "Contexts", "Types", "Threads", "k-contexts"]) {
      await tab(name).click();
      await page.getByText("No event was counted in this run").waitFor();
      assert.equal(await page.locator("#main table, #main canvas").count(), 0, name);
    }
    await page.getByRole("button", { name: "Leaks", exact: true }).click();
    await page.getByRole("heading", { name: "Not proven, but alive" }).waitFor();
  });

  test("shows what lives and is not proven to leak, with what is missing for a verdict", async () => {
    await open("leaks", "#tab=leaks");
    const { suspects } = await inPage(`data.leaks`);
    assert.ok(suspects.length > 0, "nothing lives");
    await page.getByRole("heading", { name: "Not proven, but alive" }).waitFor();
    const shown = page.locator("section.suspect");
    assert.equal(await shown.count(), suspects.length);
    const text = await shown.first().innerText();
    assert.ok(text.includes(suspects[0].at) && text.includes(suspects[0].verdict), text);
    assert.match(suspects[0].head, /^about [\d.,]+ ([kMG]B|bytes?)  /);
    assert.match(suspects[0].verdict, /ages?\b/);
  });
});

describe("a page of locks, threads, classes and named methods", () => {
  const numbers = (tab, count) => inPage(`data.facts.find((of) => of.tab === "${tab}").rows.map((row) => row.cells.slice(0, ${count}))`);
  /** Opens a tab; the rows of its table of this title, without those that a row opens. */
  async function rowsOf(name, title) {
    await tab(name).click();
    return page.locator("section", { has: page.getByRole("heading", { name: title, exact: true }) }).locator("tbody tr");
  }
  const placeOf = ({ frames }) => `${frames[0].class}.${frames[0].method}(`;

  test("has who waits for whom, as the report has it", async () => {
    await open("facts");
    const { pairs } = read("facts-lock").holders;
    assert.ok(pairs.length > 0, "nobody waits");
    assert.deepEqual(await numbers("waits", 2), pairs.map((pair) => [pair.held_nanos, pair.waits]));
    const row = (await rowsOf("Waits", "Who waits for whom")).first();
    assert.ok((await row.innerText()).includes("Shop."), await row.innerText());
    await row.getByRole("button").click();
    const opened = await page.locator("pre").first().innerText();
    assert.ok(opened.startsWith("waits:\n\tat ") && opened.includes("\nholds:\n\tat "), opened);
    assert.ok(opened.includes(placeOf(pairs[0].holder)), opened);
  });

  test("has the threads that live, as the report has them", async () => {
    await open("facts");
    const { starts } = read("facts-thread").threads;
    assert.deepEqual(await numbers("threads", 2), starts.map((row) => [row.alive, row.ended]));
    const rows = await rowsOf("Threads", "Threads that live, by the context that started them");
    assert.equal(await rows.count(), starts.length);
  });

  test("has who defines classes, as the report has it", async () => {
    await open("facts");
    const { definitions } = read("facts-class").classes;
    const expected = definitions.slice(0, 200).map((row) => [row.defined, row.hidden, row.generated, row.alive, row.bytes, row.metaspace_bytes, row.metaspace_classes, row.loaders, row.loaders_alive]);
    assert.deepEqual(await numbers("classes", 9), expected);
    const text = await (await rowsOf("Classes", "Who defines classes")).first().innerText();
    assert.ok(text.includes(definitions[0].loader), text);
  });

  test("has the times of named methods, the longest, and how many took how long", async () => {
    await open("facts");
    const { totals, contexts } = read("facts-time");
    const times = await inPage(`data.facts.find((of) => of.tab === "times").rows`);
    const sum = (of) => times.reduce((sum, row) => sum + row.cells[of], 0);
    assert.deepEqual([sum(0), sum(1)], [totals.value, totals.count]);
    assert.equal(Math.max(...times.map((row) => row.cells[2])), Math.max(...contexts.map((row) => row.longest)));
    assert.deepEqual(times.map((row) => row.cells[3]).sort(), ["Shop.orders", "Shop.tree"]);
    for (const row of times) {
      const counts = row.trace.trim().split("\n").map((line) => Number(line.split(": ")[1]));
      assert.equal(counts.reduce((sum, one) => sum + one), row.cells[1], row.trace);
    }
    const text = await (await rowsOf("Method times", "Times of named methods")).allInnerTexts();
    assert.equal(text.length, 2);
  });
});

describe("a page of a program that opens tags", () => {
  test("has the report's sums by tag, and everything else under one", async () => {
    await open("tags", "#tab=tags");
    const { rows, totals } = report("tags");
    const shown = new Map((await inPage(`byTag()`)).map((row) => [row.name, row.amount]));
    assert.ok(shown.size > 200 && shown.size === rows.length, `${shown.size} tags`);
    // JSON has names as they are, the page has line breaks in them as they are printed.
    for (const row of rows) assert.equal(shown.get(row.name.replaceAll("\n", "\\n")), row.own, row.name);
    assert.equal(await inPage(`sumsOf(0).total`), totals.value);
    assert.ok((await page.locator("#main").innerText()).includes("endpoint=/search"));
    await page.locator("#tag").selectOption({ label: "endpoint=/search" });
    const one = rows.find((row) => row.name === "endpoint=/search").own;
    assert.equal(await inPage(`sumsOf(0).total`), one);
    assert.match(await inPage(`location.hash`), /tag=endpoint/);
    await tab("Flame").click();
    assert.equal(await inPage(`new Down(new Weights(sumsOf(0), null), {}).root().now`), one);
    await tab("Threads").click();
    assert.equal(await inPage(`byThread().reduce((sum, row) => sum + row.amount, 0)`), one);
  });
});

test("no error, no request, no script but the page's own", () => {
  assert.deepEqual(wrong, []);
});

test("how fast it is", async () => {
  const began = Date.now();
  await open("one", "#tab=flame");
  await page.locator("canvas").first().waitFor();
  const opened = Date.now() - began;
  const frames = await inPage(`(async () => {
    const view = { frames: 0 };
    document.querySelector("canvas").focus();
    const until = performance.now() + 600;
    document.querySelector("canvas").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown" }));
    document.querySelector("canvas").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
    while (performance.now() < until) { await new Promise(requestAnimationFrame); view.frames++; }
    return view.frames / 0.6;
  })()`);
  console.log(`opened in ${opened} ms, ${frames.toFixed(0)} frames a second while zooming`);
});
