import { beforeEach, describe, expect, test, vi } from 'vitest';
import { createClient, type Options } from '../../src/index.js';
import { FakePage, refusal } from './page.js';

let page: FakePage;
beforeEach(() => {
  page = new FakePage();
});

const second = 1_000;
const hour = 3_600 * second;
const names = (): string[] => page.items().map((item) => item.event);

/** What the database holds. */
async function stored(): Promise<unknown[]> {
  const open = indexedDB.open('actionpulse:default:');
  await page.pass();
  if (![...open.result.objectStoreNames].includes('rows')) return [];
  const all = open.result.transaction('rows').objectStore('rows').getAll();
  await page.pass();
  open.result.close();
  return all.result;
}

const thrower = {
  get boom(): never {
    throw new Error('theirs');
  },
};

describe('what a page gets wrong stops neither the page nor the events', () => {
  test('a logger that throws', async () => {
    const thrown: unknown[] = [];
    const listener = (error: unknown): void => void thrown.push(error);
    process.on('unhandledRejection', listener);
    const fail = (): never => {
      throw new Error('theirs');
    };
    const client = page.client({ logger: { debug: fail, warn: fail } });
    expect(client.track('not JSON', { n: 1n })).toBe('');
    client.track('a');
    await client.flush();
    client.track('b');
    await client.flush();
    await page.pass();
    process.off('unhandledRejection', listener);
    expect(names()).toEqual(['a', 'b']);
    expect(thrown.length).toBeGreaterThan(0);
    expect(thrown.every((error) => String(error) === 'Error: theirs')).toBe(true);
  });

  test('a logger with state is called as a method', async () => {
    const logger = {
      said: 0,
      debug: () => undefined,
      warn() {
        this.said++;
      },
    };
    page.client({ logger }).track('not JSON', { n: 1n });
    await page.pass();
    expect(logger.said).toBe(1);
  });

  test('an option that is undefined has its default', async () => {
    const options = {};
    for (const name of ['name', 'consent', 'context', 'flushInterval', 'flushAt', 'maxBatchEvents', 'maxBatchBytes', 'maxBufferEvents', 'maxBufferBytes', 'maxAttempts', 'restInterval', 'requestTimeout', 'honorPrivacySignals', 'onGaveUp'])
      Object.assign(options, { [name]: undefined });
    page.replies = [() => new Promise(() => undefined), ...Array.from({ length: 9 }, () => 'lost' as const)];
    const client = page.client(options);
    expect(client.extension.settings).toMatchObject({ name: 'default', consent: 'granted', requestTimeout: 30 * second });
    client.track('a');
    await page.pass(4 * second);
    expect(page.requests).toHaveLength(1);
    expect(page.concurrent).toBe(1);
  });

  test.each([
    ['no options', undefined],
    ['no key', { url: 'https://events.example' }],
    ['no address', { key: 'apb_test' }],
  ])('%s', async (_name, options) => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const client = createClient(options as Options);
    expect(client.track('a')).toBe('');
    await page.pass(6 * second);
    expect(page.requests).toEqual([]);
    expect(warn).toHaveBeenCalledTimes(1);
  });

  test('values that cannot be read', async () => {
    const client = page.client({ context: () => thrower });
    expect(client.track('a', thrower)).toBe('');
    client.identify(Object.create(null));
    client.identify('ada', thrower);
    client.track('fine', JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}'));
    page.client({ name: 'two', get context() { return { ...{}, get boom(): never { throw new Error('theirs'); } }; } }).track('context');
    await page.pass(6 * second);
    expect(names().sort()).toEqual(['context', 'fine']);
    const fine = page.items().find((item) => item.event === 'fine');
    expect(JSON.stringify(fine?.properties)).toBe('{"__proto__":{"x":1},"constructor":2}');
  });

  test('a browser without beacons: the page is left without an error, and the next one sends', async () => {
    Object.assign(navigator, { sendBeacon: undefined });
    page.replies = [() => new Promise(() => undefined)];
    const errors: unknown[] = [];
    const listener = (error: unknown): void => void errors.push(error);
    process.on('uncaughtException', listener);
    const client = page.client();
    client.track('a');
    void client.flush();
    await page.pass();
    page.fire('pagehide');
    await page.pass();
    process.off('uncaughtException', listener);
    expect(errors).toEqual([]);
    page.load();
    page.client();
    await page.pass(35 * second);
    expect(names()).toEqual(['a', 'a']);
  });

  test.each([
    ['another shape', '{"x":1}'],
    ['no object', '7'],
    ['another key', '{"key":"b","id":"b","ts":1777629600000,"body":"{}","size":2}'],
    ['half a row', '{"key":'],
  ])('an entry in localStorage that is none of ours: %s', async (_name, value) => {
    vi.stubGlobal('indexedDB', undefined);
    localStorage.setItem('actionpulse:default:row:a', value);
    const fetch = vi.fn(() => Promise.resolve(refusal(422, 'validation_failed')));
    vi.stubGlobal('fetch', fetch);
    page.client({ maxAttempts: 3 });
    await page.pass(second);
    expect(fetch).not.toHaveBeenCalled();
  });
});

describe('times', () => {
  test.each([
    ['a fraction, as performance.now() gives it', Date.parse('2026-05-01T09:00:00Z') + 0.25, Date.parse('2026-05-01T09:00:00Z')],
    ['a Date', new Date('2026-05-01T09:00:00Z'), Date.parse('2026-05-01T09:00:00Z')],
    ['none', NaN, Date.parse('2026-05-01T10:00:00Z')],
  ])('%s: whole milliseconds are sent', async (_name, ts, want) => {
    const client = page.client();
    client.track('a', {}, { ts: ts as number });
    await client.flush();
    expect(page.items()[0]?.ts).toBe(want);
  });

  test('an event of tomorrow is not sent later than 47 hours from now either', async () => {
    page.online = false;
    const client = page.client();
    client.track('a', {}, { ts: Date.now() + 24 * hour });
    await page.pass();
    vi.setSystemTime(Date.now() + 47 * hour + second);
    page.online = true;
    page.fire('online');
    await page.pass();
    expect(page.requests).toEqual([]);
    expect(page.gaveUp).toMatchObject([{ reason: 'too_old' }]);
  });

  test('a fact of yesterday does not end the session of today', async () => {
    const client = page.client();
    client.track('a');
    client.track('imported', {}, { ts: Date.now() - 24 * hour });
    client.track('b');
    await client.flush();
    const sessions = Object.fromEntries(page.items().map((item) => [item.event, item.session_id]));
    expect(sessions['b']).toBe(sessions['a']);
  });
});

describe('a visitor who opts out', () => {
  test('leaves nothing, though the clock was set back', async () => {
    page.online = false;
    const client = page.client();
    client.track('a');
    await page.pass();
    vi.setSystemTime(Date.now() - hour);
    client.optOut();
    await page.pass();
    expect(await stored()).toEqual([]);
  });

  test('and in again at once: what is recorded from then on is kept', async () => {
    const client = page.client();
    client.track('a');
    client.optOut();
    client.optIn();
    client.track('b');
    await client.flush();
    await page.pass();
    expect(names()).toEqual(['b']);
  });

  test('leaves nothing, though the page ends at once: the next one removes it', async () => {
    page.online = false;
    page.client().track('a');
    await page.pass();
    expect(await stored()).toHaveLength(1);
    // The choice was written; the database had no time.
    localStorage.setItem('actionpulse:default:consent', 'denied');
    page.load();
    page.online = true;
    const next = page.client();
    await page.pass();
    expect(await stored()).toEqual([]);
    next.optIn();
    await page.pass(6 * second);
    expect(page.requests).toEqual([]);
  });

  test('by default: no database is made', async () => {
    page.client({ consent: 'denied' });
    await page.pass(6 * second);
    expect(await indexedDB.databases()).toEqual([]);
  });

  test('has opted out, though localStorage is full by now', () => {
    page.client().optOut();
    vi.spyOn(page.storage, 'setItem').mockImplementation(() => {
      throw new Error('QuotaExceededError');
    });
    page.load();
    const client = page.client();
    expect(client.consent()).toBe('denied');
    expect(client.track('a')).toBe('');
  });
});
