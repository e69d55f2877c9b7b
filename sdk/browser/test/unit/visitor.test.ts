import { IDBFactory, IDBObjectStore } from 'fake-indexeddb';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { createClient, type Consent } from '../../src/index.js';
import { FakePage, refusal } from './page.js';

let page: FakePage;
beforeEach(() => {
  page = new FakePage();
});

const second = 1_000;
const minute = 60 * second;
const paths = (): string[] => page.requests.map(({ path }) => path);
const names = (): string[] => page.items().map((item) => item.event);
/** What the browser keeps, apart from the choice itself. */
const kept = (): string[] => Object.keys(page.storage).filter((name) => !name.endsWith(':consent'));

describe('the visitor', () => {
  test('is the same on the next page and in another tab, and another one after reset', async () => {
    const client = page.client();
    client.track('a');
    page.load();
    const next = page.client();
    next.track('b');
    next.reset();
    next.track('c');
    await next.flush();
    await page.pass(5 * second);
    const [a, b, c] = page.items();
    expect(b?.anon_id).toBe(a?.anon_id);
    expect(b?.session_id).toBe(a?.session_id);
    expect(c?.anon_id).not.toBe(a?.anon_id);
    expect(c?.session_id).not.toBe(a?.session_id);
    expect(next.anonId()).toBe(c?.anon_id);
  });

  test('has a session until 30 minutes without an event', async () => {
    const client = page.client();
    const sessions: string[] = [];
    for (const pause of [0, 29 * minute, 29 * minute, 31 * minute, minute]) {
      await page.pass(pause);
      client.track('e');
      sessions.push(client.sessionId());
    }
    const [first, second_, third, fourth, fifth] = sessions;
    expect([second_, third]).toEqual([first, first]);
    expect(fourth).not.toBe(first);
    expect(fifth).toBe(fourth);
  });

  test('is kept in a cookie where there is no localStorage', () => {
    vi.stubGlobal('localStorage', undefined);
    const jar = new Map<string, string>();
    Object.defineProperty(document, 'cookie', {
      get: () => [...jar].map(([name, value]) => `${name}=${value}`).join('; '),
      set: (cookie: string) => {
        const [pair = ''] = cookie.split(';');
        const [name = '', value = ''] = pair.split('=');
        if (cookie.includes('max-age=0')) jar.delete(name);
        else jar.set(name, value);
      },
    });
    const id = page.client().anonId();
    expect(page.client().anonId()).toBe(id);
    expect([...jar.keys()].every((name) => /^[\w.%-]+$/.test(name))).toBe(true);
    page.client().optOut();
    expect([...jar.keys()]).toEqual(['actionpulse%3Adefault%3Aconsent']);
  });

  test('two names share nothing', async () => {
    const [one, two] = [page.client({ name: 'one' }), page.client({ name: 'two', key: 'apb_two' })];
    one.track('a');
    await two.flush();
    expect(one.anonId()).not.toBe(two.anonId());
    expect(page.requests).toEqual([]);
  });
});

describe('where events are kept', () => {
  test.each([
    ['IndexedDB', 0, () => undefined],
    ['localStorage', 1, () => vi.stubGlobal('indexedDB', undefined)],
    ['localStorage, since IndexedDB fails', 1, () => vi.stubGlobal('indexedDB', { open: () => fail(0) })],
    ['localStorage, since IndexedDB hangs', 1, () => vi.stubGlobal('indexedDB', { open: () => ({}) })],
  ])('%s: they outlive the page, with one id', async (_name, entries, prepare) => {
    prepare();
    page.replies = ['lost', 'lost', 'lost'];
    const id = page.client().track('a', { n: 1 });
    await page.pass(3_100);
    expect(kept().filter((name) => name.includes('row:'))).toHaveLength(entries);
    page.load();
    page.client();
    await page.pass(6 * second);
    await page.pass(minute);
    expect(page.requests).toHaveLength(4);
    expect(new Set(page.items().map((item) => item.event_id))).toEqual(new Set([id]));
    expect(kept().filter((name) => name.includes('row:'))).toEqual([]);
  });

  test('memory, where there is nothing else', async () => {
    for (const name of ['indexedDB', 'localStorage']) vi.stubGlobal(name, undefined);
    page.replies = ['lost'];
    const client = page.client();
    client.track('a');
    await page.pass(3 * second);
    client.track('b');
    await client.flush();
    await page.pass(minute);
    expect(names()).toEqual(['a', 'a', 'b']);
  });

  test('memory, when writing fails, and that is said', async () => {
    const client = page.client();
    client.track('a');
    await client.flush();
    const put = vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(() => {
      throw new Error('no room');
    });
    client.track('b');
    await client.flush();
    expect(put).toHaveBeenCalled();
    expect(names()).toEqual(['a', 'b']);
    expect(page.warned('not stored')).toBe(1);
  });

  test('memory, when sent events cannot be removed: they are not sent again and again', async () => {
    const client = page.client();
    vi.spyOn(IDBObjectStore.prototype, 'delete').mockImplementation(() => {
      throw new Error('read only');
    });
    client.track('a');
    await client.flush();
    client.track('b');
    await client.flush();
    await page.pass(minute);
    expect(names()).toEqual(['a', 'b']);
    expect(page.warned('not removed')).toBe(1);
  });

  test('a sandbox, which has no origin: memory', async () => {
    vi.stubGlobal('indexedDB', undefined);
    vi.stubGlobal('localStorage', undefined);
    Object.assign(navigator, { locks: { request: () => Promise.reject(new Error('no origin')) } });
    page.client().track('a');
    await page.pass(6 * second);
    expect(names()).toEqual(['a']);
  });

  test('localStorage, when the page is closed before the database has written', async () => {
    page.replies = [refusal(500, 'internal')];
    const client = page.client();
    client.track('a');
    await client.flush();
    client.track('b');
    page.fire('pagehide');
    // Whatever the page has begun to write does not happen any more.
    vi.stubGlobal('indexedDB', new IDBFactory());
    page.load();
    page.client();
    await page.pass(5 * second);
    expect(names()).toContain('b');
    expect(page.beacons).toEqual([]);
    expect(kept().filter((name) => name.includes('row:'))).toEqual([]);
  });

  test('a row that was rescued and written is sent once', async () => {
    page.online = false;
    const client = page.client();
    client.identify('ada');
    client.track('a');
    page.fire('pagehide');
    expect(kept().filter((name) => name.includes('row:'))).toHaveLength(2);
    await page.pass();
    page.online = true;
    page.fire('online');
    await page.pass();
    page.load();
    page.client();
    await page.pass(5 * second);
    expect(paths()).toEqual(['/v1/identify', '/v1/track']);
    expect(kept().filter((name) => name.includes('row:'))).toEqual([]);
  });

  test('a database that was closed under us is opened again', async () => {
    const client = page.client();
    client.track('a');
    await client.flush();
    const open = indexedDB.open('actionpulse:default:', 2);
    await page.pass();
    expect(open.readyState).toBe('done');
    open.result.close();
    indexedDB.deleteDatabase('actionpulse:default:');
    await page.pass();
    client.track('b');
    await client.flush();
    expect(names()).toEqual(['a', 'b']);
    page.load();
  });
});

/** An open that fails. */
function fail(ms: number): unknown {
  const request: { onerror?: (event: unknown) => void } = {};
  setTimeout(() => request.onerror?.({}), ms);
  return request;
}

describe('identify', () => {
  test('sends the pair at once, and later events carry the user', async () => {
    const client = page.client();
    client.track('before');
    client.identify('ada', { plan: 'pro' });
    client.track('after');
    await client.flush();
    expect(paths()).toEqual(['/v1/track', '/v1/identify', '/v1/track']);
    expect(page.requests[1]).toMatchObject({
      keepalive: true,
      body: {
        anon_id: client.anonId(),
        user_id: 'ada',
        traits: { plan: 'pro' },
        session_id: client.sessionId(),
        ts: Date.now(),
      },
    });
    expect(page.items().map((item) => item.user_id)).toEqual([undefined, 'ada']);
    client.reset();
    client.track('later');
    await client.flush();
    expect(page.items()[2]?.user_id).toBeUndefined();
  });

  test('the same again is sent once a session, another one each time', async () => {
    const client = page.client();
    const say = async (user: string, traits?: Record<string, unknown>): Promise<number> => {
      client.identify(user, traits);
      await client.flush();
      return page.requests.length;
    };
    expect(await say('ada', { plan: 'pro' })).toBe(1);
    expect(await say('ada', { plan: 'pro' })).toBe(1);
    page.load();
    expect(await say('ada', { plan: 'free' })).toBe(2);
    expect(await say('bob')).toBe(3);
    await page.pass(31 * minute);
    expect(await say('bob')).toBe(4);
  });

  test.each([
    ['no answer', 'lost' as const],
    ['a proxy', new Response('bad gateway', { status: 502 })],
    ['503 that may be applied', refusal(503, 'unavailable', { 'X-Should-Retry': 'true' })],
    ['an answer that is none', new Response('<html>', { status: 200 })],
  ])('is not repeated by itself after %s, since each adds an event; the next call sends it', async (_name, reply) => {
    const client = page.client();
    client.track('answered');
    await client.flush();
    page.replies = [reply];
    client.identify('ada');
    await page.pass(5 * minute);
    expect(paths()).toEqual(['/v1/track', '/v1/identify']);
    expect(page.gaveUp).toMatchObject([{ reason: 'outcome_unknown', ids: ['identify'] }]);
    client.identify('ada');
    await client.flush();
    expect(paths()).toEqual(['/v1/track', '/v1/identify', '/v1/identify']);
  });

  test.each([
    ['500', refusal(500, 'internal')],
    ['429', refusal(429, 'rate_limited', { 'Retry-After': '1' })],
    ['503 that is not applied', refusal(503, 'unavailable', {}, { applied: false })],
  ])('is repeated after %s, which has done nothing', async (_name, reply) => {
    page.replies = [reply];
    page.client().identify('ada', { plan: 'pro' });
    await page.pass(5 * second);
    expect(paths()).toEqual(['/v1/identify', '/v1/identify']);
    expect(page.requests[1]?.body).toEqual(page.requests[0]?.body);
    expect(page.gaveUp).toEqual([]);
  });

  test('is not repeated when the page was left in the middle of it', async () => {
    page.replies = [() => new Promise(() => undefined)];
    page.client().identify('ada');
    await page.pass(second);
    page.load();
    Object.assign(navigator, { locks: undefined });
    const next = page.client();
    await page.pass(second);
    expect(paths()).toEqual(['/v1/identify']);
    expect(page.gaveUp).toMatchObject([{ reason: 'outcome_unknown' }]);
    next.identify('ada');
    await page.pass(second);
    expect(paths()).toEqual(['/v1/identify', '/v1/identify']);
  });

  test('is not sent as a beacon, which has no answer', async () => {
    page.online = false;
    const client = page.client();
    client.identify('ada');
    await page.pass();
    page.online = true;
    page.hide();
    expect(page.beacons).toEqual([]);
  });

  test('refuses what is no user', () => {
    const client = page.client();
    client.identify('');
    client.identify('x'.repeat(201));
    expect(page.warned('identify needs')).toBe(2);
    expect(client.userId()).toBe('');
  });
});

describe('a page that is hidden or closed', () => {
  const bodies = (): { event_id: string }[][] => page.beacons.map(({ body }) => JSON.parse(body).events);

  test('sends what waits as a beacon, with the key in the address, and later the same by fetch', async () => {
    const client = page.client();
    await page.pass();
    const id = client.track('a');
    page.hide();
    expect(page.beacons.map(({ url }) => url)).toEqual(['https://events.example/v1/track?key=apb_test']);
    expect(bodies()).toMatchObject([[{ event_id: id }]]);
    expect(JSON.parse(page.beacons[0]?.body ?? '').sent_at).toBe(Date.now());
    page.load();
    page.client();
    await page.pass(5 * second);
    expect(page.items()).toEqual(bodies()[0]);
  });

  test('sends each event as a beacon once', async () => {
    const client = page.client();
    await page.pass();
    client.track('a');
    page.hide();
    page.fire('pagehide');
    client.track('b');
    page.fire('pagehide');
    expect(bodies().map((events) => events.length)).toEqual([1, 1]);
  });

  test('keeps to 64 KiB; the rest stays in the outbox', async () => {
    const client = page.client({ flushAt: 100 });
    await page.pass();
    for (let i = 0; i < 10; i++) client.track(`e${i}`, { text: 'x'.repeat(10_000) });
    page.hide();
    expect(page.beacons).toHaveLength(1);
    expect(page.beacons[0]?.body.length).toBeLessThanOrEqual(64 * 1024);
    expect(bodies()[0]).toHaveLength(6);
    await client.flush();
    expect(names()).toHaveLength(10);
  });

  test('a text of other letters counts as the bytes that it has', async () => {
    const client = page.client({ flushAt: 100 });
    await page.pass();
    for (let i = 0; i < 10; i++) client.track('e', { text: 'ж'.repeat(5_000) });
    page.hide();
    expect(new TextEncoder().encode(page.beacons[0]?.body).length).toBeLessThanOrEqual(64 * 1024);
    expect(bodies()[0]).toHaveLength(6);
  });

  test('sends half when others use the budget, and nothing is lost when it is used up', async () => {
    const client = page.client();
    await page.pass();
    for (let i = 0; i < 4; i++) client.track(`e${i}`, { text: 'x'.repeat(10_000) });
    page.beaconBudget = 30_000;
    page.hide();
    expect(bodies().map((events) => events.length)).toEqual([2]);
    page.beaconBudget = 0;
    page.hide();
    await client.flush();
    expect(names()).toEqual(['e0', 'e1', 'e2', 'e3']);
  });

  test('sends none while a delay is to be kept', async () => {
    page.replies = [refusal(429, 'rate_limited', { 'Retry-After': '60' })];
    const client = page.client();
    client.track('a');
    await client.flush();
    page.hide();
    page.fire('pagehide');
    expect(page.beacons).toEqual([]);
  });
});

test('a request that fails because the page ends is no failure: the next page does not wait', async () => {
  page.replies = [() => new Promise(() => undefined)];
  const client = page.client({ requestTimeout: 100 });
  client.track('a');
  void client.flush();
  await page.pass();
  page.fire('pagehide');
  await page.pass(200);
  expect(localStorage.getItem('actionpulse:default:pause')).toBeNull();
  expect(page.requests).toHaveLength(1);
  // It came back from a cache instead.
  await page.pass(6 * second);
  expect(names()).toEqual(['a', 'a']);
});

describe('consent', () => {
  test('pending: nothing is stored or sent; granted: what waited is sent, with its id and time', async () => {
    const client = page.client({ consent: 'pending' });
    const id = client.track('a');
    const ts = Date.now();
    client.identify('ada');
    await page.pass(minute);
    page.hide();
    expect(page.requests).toEqual([]);
    expect(page.beacons).toEqual([]);
    expect(kept()).toEqual([]);
    expect(await indexedDB.databases()).toEqual([]);
    client.setConsent('granted');
    await page.pass(6 * second);
    expect(paths()).toEqual(['/v1/track', '/v1/identify']);
    expect(page.items()[0]).toMatchObject({ event_id: id, ts, anon_id: client.anonId() });
    expect(page.client({ consent: 'pending' }).consent()).toBe('granted');
  });

  test('pending, then denied: what waited is dropped', async () => {
    const client = page.client({ consent: 'pending' });
    client.track('a');
    client.setConsent('denied');
    client.optIn();
    client.track('b');
    await client.flush();
    expect(names()).toEqual(['b']);
  });

  test('pending: what waits is bounded', async () => {
    vi.stubGlobal('indexedDB', undefined);
    const client = page.client({ consent: 'pending', flushAt: 5000 });
    for (let i = 0; i < 1010; i++) client.track(`e${i}`);
    client.optIn();
    await client.flush();
    expect(names()).toHaveLength(1000);
    expect(page.gaveUp).toHaveLength(10);
    expect(names()[0]).toBe('e10');
  });

  test('opting out removes outbox and ids, cuts what is under way, and lasts', async () => {
    page.replies = [() => new Promise(() => undefined)];
    const client = page.client();
    const id = client.anonId();
    client.track('a');
    void client.flush();
    await page.pass();
    expect(page.concurrent).toBe(1);
    client.optOut();
    await page.pass(second);
    expect(page.concurrent).toBe(0);
    expect(kept()).toEqual([]);
    expect(client.track('b')).toBe('');
    client.identify('ada');
    page.hide();
    page.load();
    const next = page.client();
    expect(next.consent()).toBe('denied' satisfies Consent);
    next.track('c');
    await next.flush();
    await page.pass(minute);
    expect(page.requests).toHaveLength(1);
    expect(page.beacons).toEqual([]);
    next.anonId();
    expect(kept()).toEqual([]);
    next.optIn();
    next.track('d');
    await next.flush();
    expect(names()).toEqual(['a', 'd']);
    expect(page.items()[1]?.anon_id).not.toBe(id);
  });

  test('opting out while a request is being put together: it is not sent', async () => {
    const client = page.client();
    for (const turns of [1, 3, 6, 10, 15, 20, 30, 40]) {
      client.identify(`user ${turns}`);
      client.track('a');
      void client.flush();
      await page.idle(turns);
      const before = page.requests.length;
      client.optOut();
      await page.idle();
      expect(page.requests).toHaveLength(before);
      client.optIn();
    }
  });

  test('opting out holds in other tabs at once', async () => {
    const [one, two] = [page.client(), page.client()];
    two.track('a');
    one.optOut();
    page.fire('storage', { key: 'actionpulse:default:consent' });
    two.track('b');
    await two.flush();
    page.hide();
    one.optIn();
    page.fire('storage', { key: 'actionpulse:default:consent' });
    await page.pass(6 * second);
    expect(page.requests).toEqual([]);
    expect(page.beacons).toEqual([]);
  });

  test.each([
    ['doNotTrack', '1'],
    ['globalPrivacyControl', true],
  ])('%s is obeyed if that is wanted, until the visitor has chosen', (name, value) => {
    Object.assign(navigator, { [name]: value });
    expect(page.client().consent()).toBe('granted');
    const client = page.client({ honorPrivacySignals: true });
    expect(client.consent()).toBe('denied');
    client.optIn();
    expect(page.client({ honorPrivacySignals: true }).consent()).toBe('granted');
  });
});

describe('a client that cannot work', () => {
  test.each([
    ['a server key', { key: 'aps_secret' }],
    ['a project key', { key: 'apk_secret' }],
    ['no address', { url: 'events.example' }],
  ])('%s: nothing is stored or sent, the key is not shown', async (_name, options) => {
    const client = page.client(options);
    expect(client.track('a')).toBe('');
    client.optIn();
    await client.flush();
    page.hide();
    await page.pass(minute);
    expect(page.requests).toEqual([]);
    expect(Object.keys(page.storage)).toEqual([]);
    expect(page.warned('nothing is sent')).toBe(1);
    expect(JSON.stringify(page.warnings)).not.toContain('secret');
  });

  test('on a server nothing happens', async () => {
    for (const name of ['document', 'navigator', 'localStorage', 'indexedDB', 'addEventListener']) vi.stubGlobal(name, undefined);
    const client = createClient({ url: 'https://events.example', key: 'apb_test' });
    expect(client.track('a')).toBe('');
    client.identify('ada');
    await client.flush();
    expect(page.requests).toEqual([]);
  });
});
