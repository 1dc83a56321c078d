// The page of `lucce serve` in Chromium: it renews its data, keeps what a person looks at, and says when the JVM has ended.
// `cargo xtask page-tests` starts it with these in the environment:
//   SERVED    the address that `lucce serve` of a program that goes on has printed
//   PROGRAM   the program's process id
//   CHROMIUM  the browser
//   PLAYWRIGHT  where playwright-core is installed
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";

const { SERVED, PROGRAM, CHROMIUM, PLAYWRIGHT } = process.env;
const { chromium } = createRequire(PLAYWRIGHT + "/")("playwright-core");
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

let browser;
let page;
const wrong = [];

before(async () => {
  browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("console", (message) => { if (message.type() === "error" && !message.location().url.endsWith("/favicon.ico")) wrong.push(`console: ${message.text()}`); });
  page.on("request", (request) => { if (!request.url().startsWith(SERVED) && !request.url().endsWith("/favicon.ico")) wrong.push(`request: ${request.url()}`); });
});

after(async () => {
  await browser?.close();
});

const tab = (name) => page.getByRole("tab", { name, exact: true });
const inPage = (code) => page.evaluate(code);
const open = (fragment) => page.goto("about:blank").then(() => page.goto(SERVED + fragment));
/** Until newer data than these are shown. */
const renewed = (since) => page.waitForFunction((since) => data.live.reading > since, since, { timeout: 60_000 });
const reading = () => inPage("data.live.reading");

test("shows more and more", async () => {
  await open("");
  assert.match(await page.locator("#live").textContent(), /^live, every/);
  const whole = () => inPage(`sumsOf(1).total`);
  const before = await whole();
  await renewed(await reading());
  assert.ok((await whole()) > before, "nothing more was counted");
  assert.equal(await inPage("data.runs.length"), 2);
  assert.equal(await tab("Difference").count(), 0);
});

test("has figures for Prometheus", async () => {
  const answer = await fetch(SERVED + "metrics");
  assert.equal(answer.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  const text = await answer.text();
  assert.match(text, /^lucce_line_allocated_bytes_total\{line="Shop\.\w+\(Shop\.java:\d+\)"\} [1-9]\d*$/m);
  assert.match(text, /^lucce_events_lost_total 0$/m);
});

test("tells what was counted lately from what was counted since the start", async () => {
  await open("#tab=methods&run=0&kind=alloc");
  const name = /^in the last /;
  assert.match(await page.locator("#run option").first().textContent(), name);
  await renewed(await reading());
  await renewed(await reading());
  const names = await inPage(`byMethod("method").map((row) => row.name)`);
  // What it did at first it does no more.
  assert.ok(names.includes("Shop.goOn") && !names.includes("Shop.orders"), names.join());
  assert.equal(await inPage("state.run"), 0);
  assert.match(await page.locator("#run option").first().textContent(), name);
});

test("keeps a search, its text and where one types, while data come", async () => {
  await open("#tab=methods");
  const filter = page.locator("#search");
  await filter.fill("Shop\\.");
  await page.getByText("rows that match").waitFor();
  await renewed(await reading());
  assert.equal(await filter.inputValue(), "Shop\\.");
  assert.ok(await filter.evaluate((input) => input === document.activeElement));
  const rows = await page.locator("#main tbody tr").allTextContents();
  assert.ok(rows.length > 1 && rows.every((row) => row.includes("Shop.")), rows.join());
});

test("keeps the zoom of a flame graph", async () => {
  await open("#tab=flame&kind=alloc");
  await page.locator("canvas").first().focus();
  for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
  const zoomed = () => inPage(`(() => { const [view] = open.views; return view.names(view.zoom).join(); })()`);
  const before = await zoomed();
  assert.match(before, /Shop/);
  await renewed(await reading());
  assert.equal(await zoomed(), before);
  assert.ok(await inPage(`document.activeElement.tagName === "CANVAS"`));
});

test("stands still while a trace is open, and when it is told to", async () => {
  await open("#tab=contexts");
  await page.locator("td button.link").first().click();
  const trace = page.locator("#main pre");
  const text = await trace.innerText();
  await page.locator("#live", { hasText: "stands still while a trace is open" }).waitFor({ timeout: 60_000 });
  const seen = await reading();
  await page.waitForTimeout(1000);
  assert.equal(await reading(), seen);
  assert.equal(await trace.innerText(), text);
  await page.locator("td button.link").first().click();
  await renewed(await reading());
  await page.locator("#pause").click();
  const at = await reading();
  await page.waitForTimeout(2500);
  assert.equal(await reading(), at);
  assert.equal(await page.locator("#live").textContent(), "paused");
  await page.locator("#pause").click();
  await renewed(at);
});

test("finds what was chosen by its name, though its number differs", async () => {
  const method = await inPage(`NAMED.method[0]() > 0 && placeOf("method", "Shop.tree")`);
  assert.ok(method >= 0);
  await open("#tab=flame&method=Shop.tree&thread=main&kind=alloc");
  await page.getByText("Callees of Shop.tree").waitFor();
  await renewed(await reading());
  await page.getByText("Callees of Shop.tree").waitFor();
  assert.equal(await inPage(`data.threads[state.thread]`), "main");
  assert.match(await inPage("location.hash"), /method=Shop\.tree/);
});

test("nothing is told without the secret", async () => {
  const foreign = new URL("/" + "0".repeat(32) + "/", SERVED);
  assert.equal((await fetch(foreign)).status, 403);
  assert.equal((await fetch(new URL("/", SERVED))).status, 403);
  // A script of another site cannot read it, even with the secret.
  const other = await browser.newPage();
  await other.goto("about:blank");
  const told = await other.evaluate((url) => fetch(url + "data?after=0").then((answer) => answer.text(), (error) => "refused: " + error.name), SERVED);
  assert.match(told, /^refused/);
  await other.close();
});

test("says that the JVM has ended, and keeps what it was told", async () => {
  await open("");
  process.kill(Number(PROGRAM));
  await page.locator("#live", { hasText: "the JVM has ended" }).waitFor({ timeout: 60_000 });
  assert.ok((await inPage("sumsOf(1).total")) > 0);
  const at = await reading();
  await page.waitForTimeout(1000);
  assert.equal(await reading(), at);
});

test("no error, and no request but to lucce", () => {
  assert.deepEqual(wrong, []);
});
