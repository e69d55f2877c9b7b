import { beforeEach, describe, expect, test, vi } from 'vitest';
import { type Consent, createClient } from '../../src/index.js';
import { FakePage } from './page.js';

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
