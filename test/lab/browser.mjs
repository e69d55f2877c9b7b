// The browser client as a client under test, for
//
//   actionpulse lab client -- node test/lab/browser.mjs
//
// Node stands in for the page: localStorage is a file in LAB_OUTBOX, written at
// once; there is no IndexedDB, no beacon and one tab, which gets every lock. What only a browser can
// show is tested in one, in sdk/browser. Build that first: npm run build.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const { ACTIONPULSE_URL, ACTIONPULSE_BROWSER_TOKEN, LAB_OUTBOX, LAB_EVENTS, LAB_BATCH } = process.env;

const file = join(LAB_OUTBOX, 'storage.json');
const load = () => {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return {};
  }
};
const values = load();
const save = () => {
  writeFileSync(`${file}.new`, JSON.stringify(values));
  renameSync(`${file}.new`, file);
};
const storage = {
  getItem: (name) => values[name] ?? null,
  setItem: (name, value) => ((values[name] = String(value)), save()),
  removeItem: (name) => (delete values[name], save()),
};
globalThis.localStorage = new Proxy(storage, {
  ownKeys: () => Object.keys(values),
  getOwnPropertyDescriptor: (_, name) => (name in values ? { enumerable: true, configurable: true, value: values[name] } : undefined),
});
globalThis.location = new URL('https://shop.example/');
globalThis.document = { referrer: '', title: 'lab', visibilityState: 'visible', addEventListener() {}, cookie: '' };
globalThis.addEventListener = () => {};
globalThis.screen = { width: 1, height: 1 };
Object.defineProperty(globalThis, 'navigator', { value: { onLine: true, language: 'en', sendBeacon: () => false, locks: { request: async (_, work) => work() } }, configurable: true });

const { createClient } = await import('../../sdk/browser/dist/index.js');

const said = [];
const logger = { debug() {}, warn: (...words) => (said.push(words[0]), console.warn(...words)) };
const client = createClient({
  url: ACTIONPULSE_URL,
  key: ACTIONPULSE_BROWSER_TOKEN,
  logger,
  flushInterval: 100,
  maxAttempts: 6,
  restInterval: 1_000,
  ...(Number(LAB_BATCH) > 0 && { maxBatchEvents: Number(LAB_BATCH) }),
});
for (let i = 0; i < Number(LAB_EVENTS); i++) client.track(`lab event ${i}`);

// Ends when nothing waits, or the client has said that it keeps what does.
const waiting = () => Object.keys(values).some((name) => name.includes(':row:'));
const resting = () => said.some((words) => String(words).includes('events are kept'));
await client.flush();
while (waiting() && !resting()) {
  await new Promise((resolve) => setTimeout(resolve, 20));
  await client.flush();
}
process.exit(waiting() ? 1 : 0);
