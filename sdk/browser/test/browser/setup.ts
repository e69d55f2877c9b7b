import { readFileSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { type ActionPulse, startActionPulse } from './actionpulse.js';
import { Network, startPages } from './network.js';

/** Everything that a test in a browser stands on: a server, pages of another origin, Chromium. */
export interface Bench {
  server: ActionPulse;
  pages: string;
  /** Makes a browser without any history, and a network of its own for it. */
  visit(): Promise<Visit>;
  /** Waits until so many events of each name are stored, and returns that. */
  stored(want: Record<string, number>): Promise<Record<string, number>>;
  stop(): Promise<void>;
}

/** A visitor's browser and the network that it is on. */
export interface Visit {
  context: BrowserContext;
  network: Network;
  /** Returns the address of a page; `settings` are options of the client, over the test's own. */
  address(settings?: Record<string, unknown>, path?: string): string;
  /** Opens a page. */
  open(settings?: Record<string, unknown>, path?: string): Promise<Page>;
  close(): Promise<void>;
}

const chromiumPath = process.env['CHROMIUM'] ?? '/usr/bin/chromium';

/** A page with the package as a module: `client`, and what it has said in `said`. */
const modulePage = `<!doctype html><title>shop</title>
<script type="importmap">{"imports": {"rrweb": "/rrweb.js"}}</script>
<body><h1>Shop</h1><input id="card" value=""><script type="module">
import { createClient } from '/dist/index.js';
window.said = [];
const note = (kind) => (value) => window.said.push([kind, value]);
const settings = JSON.parse(decodeURIComponent(location.hash.slice(1)));
window.client = createClient({
  logger: {debug() {}, warn: (message, detail) => note('warn')([message, detail])},
  onRejected: note('rejected'), onGaveUp: note('gaveUp'), ...settings});
window.startReplay = async (options) => (await import('/dist/replay.js')).startReplay(window.client, options);
</script>`;

/**
 * A page with the snippet of the README, as it is there but for the addresses
 * and the key. The calls in it are made before the script is loaded.
 */
function scriptPage(): string {
  const snippet = /```html\n([^]*?)```/.exec(readFileSync('README.md', 'utf8'))?.[1];
  if (!snippet) throw new Error('README.md has no snippet');
  const changed = snippet
    .replace("'/assets/actionpulse.min.js'", "'/dist/actionpulse.min.js'")
    .replace(/init\([^]*?\);/, 'init(JSON.parse(decodeURIComponent(location.hash.slice(1))));');
  return `<!doctype html><title>shop</title><body><input id="card">${changed}<script>
var early = {id: actionpulse[1][3], ts: new Date(actionpulse[1][2]).toISOString(), name: actionpulse[1][1][0]};
function load(src) { var s = document.createElement('script'); s.src = src; document.head.append(s);
  return new Promise(function(done) { s.onload = done; }); }
</script>`;
}

export async function startBench(): Promise<Bench> {
  const [server, browser, pages] = await Promise.all([
    startActionPulse(),
    chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox'] }),
    startPages({ '/': modulePage, '/script': scriptPage(), '/other': '<!doctype html><title>other</title>' }),
  ]);
  return {
    server,
    pages: pages.url,
    visit: () => visit(browser, server, pages.url),
    async stored(want) {
      const end = Date.now() + 15_000;
      for (;;) {
        const counts = await server.counts();
        const found = Object.fromEntries(Object.keys(want).map((name) => [name, counts[name] ?? 0]));
        const there = Object.entries(want).every(([name, count]) => (found[name] ?? 0) >= count);
        if (there || Date.now() > end) return found;
      }
    },
    async stop() {
      pages.stop();
      await Promise.all([browser.close(), server.stop()]);
    },
  };
}

async function visit(browser: Browser, server: ActionPulse, pages: string): Promise<Visit> {
  const network = await new Network(server.url).start();
  const context = await browser.newContext();
  const defaults = { url: network.url, key: server.browserToken, flushInterval: 100 };
  const address: Visit['address'] = (settings = {}, path = '/') =>
    `${pages}${path}#${encodeURIComponent(JSON.stringify({ ...defaults, ...settings }))}`;
  return {
    context,
    network,
    address,
    async open(settings, path) {
      const page = await context.newPage();
      await page.goto(address(settings, path));
      return page;
    },
    async close() {
      await context.close();
      network.stop();
    },
  };
}
