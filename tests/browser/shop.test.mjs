// The page of the shop, a Spring Boot program with four known faults, in Chromium: its first screen names the guilty lines, and each
// request has its bytes, waits and exceptions. `cargo xtask page-tests` starts it with these in the environment:
//   PAGES     a folder with shop.html and shop-KIND.json (`lucce report --by request`) for alloc, lock, exception and request
//   REQUESTS  how many requests of each kind the shop has answered
//   CHROMIUM  the browser
//   PLAYWRIGHT  where playwright-core is installed
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";

const { PAGES, REQUESTS, CHROMIUM, PLAYWRIGHT } = process.env;
const { chromium } = createRequire(PLAYWRIGHT + "/")("playwright-core");
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const SCREEN = { width: 1280, height: 800 };
const KINDS = ["alloc", "lock", "exception", "request"];
const reports = Object.fromEntries(KINDS.map((kind) => [kind, JSON.parse(readFileSync(`${PAGES}/shop-${kind}.json`, "utf8")).rows]));
const TOTAL = "GET /customers/{customer}/total";
const PATTERNS = ["GET /stock/{article}", "POST /stock/{article}/reservations", TOTAL];
/** Exceptions of a request: a customer's 20 orders have 2 items each without a price. */
const THROWN = 40;

/** For each fault: the list of the first screen, and the guilty lines. */
const FAULTS = [
  ["Own lines: live objects", /^io\.lucce\.shop\.AuditTrail\.record\(AuditTrail\.java:16\)$/],
  ["Own lines: alloc", /^io\.lucce\.shop\.OrderService\.itemTotal\(OrderService\.java:31\)$/],
  ["Own lines: exception", /^io\.lucce\.shop\.PriceReader\.cents\(PriceReader\.java:14\)$/],
  ["Own lines: lock", /^io\.lucce\.shop\.StockLedger\.(reserve\(StockLedger\.java:14|left\(StockLedger\.java:20)\)$/],
];

let browser;
let page;
const wrong = [];

before(async () => {
  browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  page = await (await browser.newContext({ viewport: SCREEN })).newPage();
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("console", (message) => { if (message.type() === "error") wrong.push(`console: ${message.text()}`); });
});

after(async () => {
  await browser?.close();
});

const tab = (name) => page.getByRole("tab", { name, exact: true });
const inPage = (code) => page.evaluate(code);
const card = (name) => page.locator("section", { has: page.getByRole("heading", { name }) });

async function open(fragment = "") {
  await page.goto("about:blank");
  await page.goto(`file://${PAGES}/shop.html${fragment}`);
}

test("names the guilty line of each fault on its first screen", async () => {
  await open();
  const bar = await page.locator("#status").boundingBox();
  for (const [list, line] of FAULTS) {
    const rows = await card(list).locator("tr.own button").all();
    const titles = await Promise.all(rows.map((row) => row.getAttribute("title")));
    const at = titles.findIndex((title) => line.test(title));
    assert.ok(at >= 0, `${list}: ${titles.join()}`);
    const box = await rows[at].boundingBox();
    assert.ok(box.y >= 0 && box.y + box.height <= bar.y, `${list}: ${JSON.stringify(box)}`);
    assert.match(await rows[at].innerText(), /^[A-Z]\w+\.\w+:\d+$/);
  }
  assert.equal(await inPage("scrollY"), 0);
});

test("leads from a line to its sums, and to its traces", async () => {
  await open();
  const sum = await inPage(`(() => { const at = data.kinds.findIndex((kind) => kind.name === "exception"); return byOwnCode("own", new Sums(selected(0, "", at, "count"), 0)).find((row) => row.name.includes("PriceReader.cents")).amount; })()`);
  assert.equal(sum, REQUESTS * THROWN);
  await card("Own lines: exception").getByRole("button", { name: "PriceReader.cents:14" }).click();
  assert.equal(await tab("Methods").getAttribute("aria-selected"), "true");
  const row = page.locator("#main tr[aria-current]");
  assert.match(await row.innerText(), /PriceReader\.cents\(PriceReader\.java:14\)/);
  await row.getByRole("button").click();
  await page.locator("#main tr[data-details] td button.link").first().click();
  // Frames of libraries are folded in the trace; one key shows all of them.
  const trace = page.locator("#main pre");
  assert.match(await trace.innerText(), /… \d+ library frames \(org\.springframework/);
  assert.doesNotMatch(await trace.innerText(), /at org\.springframework/);
  await page.keyboard.press("f");
  assert.match(await trace.innerText(), /at org\.springframework/);
  assert.match(await inPage("location.hash"), /frames=all/);
});

test("has bytes, waits and exceptions of each request, as the report has them", async () => {
  await open("#tab=requests");
  const sums = (kind, measure) => inPage(`(() => { state.kind = data.kinds.findIndex((kind) => kind.name === "${kind}"); state.measure = "${measure}"; return byRequest().map((row) => [row.name, row.amount]).sort(); })()`);
  for (const [kind, of] of [["alloc", "own"], ["lock", "own"], ["exception", "count"], ["request", "count"]]) {
    const expected = reports[kind].map((row) => [row.name, row[of]]).filter(([, amount]) => amount > 0);
    assert.deepEqual(await sums(kind, of === "own" ? "value" : "count"), expected.sort(), kind);
  }
  assert.deepEqual(await sums("request", "count"), PATTERNS.map((pattern) => [pattern, Number(REQUESTS)]).sort());
  const row = page.locator("#main tbody tr", { hasText: TOTAL });
  const heads = await page.locator("#main thead th").allInnerTexts();
  const cell = (kind) => row.locator("td").nth(heads.findIndex((head) => head.startsWith(kind))).locator("span").getAttribute("title");
  const all = Number((await cell("exception")).replaceAll(",", ""));
  assert.equal(all, reports.exception.find((row) => row.name === TOTAL).count);
  await page.getByLabel("for each request").check();
  const each = Number((await row.locator("td").nth(heads.indexOf("exception")).innerText()).replaceAll(",", ""));
  assert.ok(each >= THROWN && Math.abs(each - all / REQUESTS) < 0.01, `${each}`);
  assert.match(await inPage("location.hash"), /each=yes/);
});

test("shows the events of one request in all tabs, and says so in its address", async () => {
  await open("#tab=requests");
  await page.getByRole("button", { name: TOTAL, exact: true }).click();
  await page.getByRole("button", { name: "Flame graph of this request" }).click();
  const bytes = reports.alloc.find((row) => row.name === TOTAL).own;
  assert.equal(await inPage("sumsOf(0).total"), bytes);
  assert.equal(await inPage("new Down(new Weights(sumsOf(0), null), {}).root().now"), bytes);
  assert.equal(new URLSearchParams((await inPage("location.hash")).slice(1)).get("request"), TOTAL);
  await tab("Threads").click();
  assert.equal(await inPage("byThread().reduce((sum, row) => sum + row.amount, 0)"), bytes);
  await open("#request=" + encodeURIComponent(TOTAL));
  assert.equal(await inPage("sumsOf(0).total"), bytes);
  assert.equal(await page.locator("#request option:checked").innerText(), TOTAL);
  // Tags that tell the request alone have no tab of their own.
  assert.equal(await tab("Tags").count(), 0);
});

test("fits into a narrow window", async () => {
  await page.setViewportSize({ width: 420, height: 800 });
  for (const name of ["overview", "requests", "methods", "contexts"]) {
    await open(`#tab=${name}`);
    assert.ok((await inPage("document.documentElement.scrollWidth - innerWidth")) <= 0, name);
  }
  await page.setViewportSize(SCREEN);
});

test("has no requests where the program has none", async () => {
  await page.goto(`file://${PAGES}/one.html`);
  assert.equal(await tab("Requests").count(), 0);
  assert.ok(await page.locator("#request-label").isHidden());
});

test("no error", () => {
  assert.deepEqual(wrong, []);
});
