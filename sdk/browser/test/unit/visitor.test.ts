import { beforeEach, describe, expect, test, vi } from 'vitest';
import { FakePage, refusal } from './page.js';

let page: FakePage;
beforeEach(() => {
  page = new FakePage();
});

const second = 1_000;
const minute = 60 * second;
const paths = (): string[] => page.requests.map(({ path }) => path);

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

  test('refuses what is no user', async () => {
    const client = page.client();
    client.identify('');
    client.identify('x'.repeat(201));
    await page.pass();
    expect(page.warned('identify needs')).toBe(2);
    expect(client.userId()).toBe('');
  });
});
