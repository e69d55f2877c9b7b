import { beforeEach, expect, test, vi } from 'vitest';
import { FakePage } from './page.js';

interface Global {
  init(options: unknown): unknown;
  track(name: string, properties?: unknown): void;
  identify(user: string): void;
  optOut(): void;
  consent?(): string;
}

let page: FakePage;
const options = { url: 'https://events.example', key: 'apb_test' };

beforeEach(() => {
  page = new FakePage();
  vi.resetModules();
});

async function load(queue?: unknown[]): Promise<Global> {
  const window = { actionpulse: queue };
  vi.stubGlobal('window', window);
  await import('../../src/script.js');
  return window.actionpulse as unknown as Global;
}

test('calls made before the script was there keep their order, time and id', async () => {
  const id = '018f9f5e-0000-4000-8000-000000000001';
  const at = Date.now() - 4_000;
  const global = await load([
    ['track', ['early', { n: 1 }], at, id],
    ['identify', ['ada'], at + 1],
    ['init', [options], at + 2],
    ['track', ['late'], at + 3, ''],
  ]);
  global.track('now');
  await page.pass(6_000);
  expect(page.requests.map(({ path }) => path)).toEqual(['/v1/track', '/v1/identify', '/v1/track']);
  expect(page.items().map((item) => [item.event, item.ts])).toEqual([
    ['early', at],
    ['late', at + 3],
    ['now', at + 4_000],
  ]);
  expect(page.items()[0]).toMatchObject({ event_id: id, properties: { n: 1 } });
  expect(page.items()[1]?.event_id).toMatch(/^[0-9a-f-]{36}$/);
});

test('calls wait for init, with the time of the call', async () => {
  const global = await load();
  global.track('early');
  const ts = Date.now();
  await page.pass(3_000);
  const client = global.init(options);
  expect(global.init(options)).toBe(client);
  await page.pass(6_000);
  expect(page.items().map((item) => [item.event, item.ts])).toEqual([['early', ts]]);
  global.optOut();
  expect(global.consent?.()).toBe('denied');
});

test('loaded a second time, the script leaves the client as it is', async () => {
  const global = await load();
  global.init(options);
  vi.resetModules();
  const again = await load(global as unknown as unknown[]);
  again.track('a');
  await page.pass(6_000);
  expect(page.items().map((item) => item.event)).toEqual(['a']);
});

test('an element with the id of the global is no client', async () => {
  const global = await load({ tagName: 'DIV' } as unknown as unknown[]);
  global.init(options);
  global.track('a');
  await page.pass(6_000);
  expect(page.items()).toHaveLength(1);
});

test('a page that has kept the queue loses nothing', async () => {
  const queue: unknown[] = [['init', [options], Date.now()]];
  await load(queue);
  const at = Date.now() - 10;
  queue.push(['track', ['a'], at, '']);
  await page.pass(6_000);
  expect(page.items()).toMatchObject([{ event: 'a', ts: at }]);
});

test('a fact with an id of its own keeps the time of the call', async () => {
  const id = '018f9f5e-0000-4000-8000-000000000001';
  const at = Date.now() - 4_000;
  await load([
    ['init', [options], at],
    ['track', ['a', {}, { eventId: id }], at, 'x'],
  ]);
  await page.pass(6_000);
  expect(page.items()).toMatchObject([{ event_id: id, ts: at }]);
});
