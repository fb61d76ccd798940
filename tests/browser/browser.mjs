// A browser that does what it is told: one order a line of standard input, one answer a line of
// standard output, both JSON. Started by ``browser_page``. Whatever the page complains of is kept.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(new URL("../../packaging/dashboard/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const axe = require.resolve("axe-core/axe.min.js");

const browser = await chromium.launch({ executablePath: process.argv[2], args: ["--no-sandbox"] });
let page;
let complaints = [];
/** What is sent with each request, as by a browser that a proxy has let in. */
let headers = {};

const orders = {
  async open({ url, width, height, scheme }) {
    await page?.context().close();
    // The page's own rules would keep the test's script out, too.
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, bypassCSP: false, extraHTTPHeaders: headers });
    page = await context.newPage();
    complaints = [];
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    await page.goto(url);
  },
  send: (given) => void (headers = given.headers),
  fill: ({ where, text }) => page.fill(where, text),
  click: ({ where }) => page.click(where),
  // Along an element, from one distance below its upper edge to another.
  async drag({ where, down: [from, to], released = true }) {
    const { x, y, width } = await page.locator(where).boundingBox();
    await page.mouse.move(x + width / 2, y + from);
    await page.mouse.down();
    await page.mouse.move(x + width / 2, y + to, { steps: 4 });
    if (released) await page.mouse.up();
  },
  press: ({ key }) => page.keyboard.press(key),
  see: ({ where, text, seconds }) => page.locator(where, { hasText: text }).first().waitFor({ timeout: seconds * 1000 }),
  text: ({ where }) => page.locator(where).first().innerText(),
  shoot: async ({ file }) => void (await page.screenshot({ path: file })),
  hide: ({ hidden }) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { value, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden),
  evaluate: ({ script }) => page.evaluate(script),
  overflow: () => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth),
  complaints: () => complaints,
  forgive: () => void (complaints = []),
  async violations() {
    // Evaluated by the debugger, whom no Content-Security-Policy holds back.
    await page.evaluate(require("node:fs").readFileSync(axe, "utf8"));
    const found = await page.evaluate(() => globalThis.axe.run(document));
    return found.violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html).slice(0, 3)}`);
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { order, ...more } = JSON.parse(line);
  try {
    console.log(JSON.stringify({ answer: (await orders[order](more)) ?? null }));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error), complaints }));
  }
}
await browser.close();
