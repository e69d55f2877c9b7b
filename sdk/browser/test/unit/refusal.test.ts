import { beforeEach, describe, expect, test } from 'vitest';
import { accepted, FakePage, refusal, type Reply } from './page.js';

let page: FakePage;
beforeEach(() => {
  page = new FakePage();
});

const second = 1_000;
const hour = 3_600 * second;

describe('refusals', () => {
  test.each([
    [401, 'unauthenticated'],
    [402, 'payment_required'],
    [403, 'forbidden'],
    [404, 'not_found'],
    [405, 'method_not_allowed'],
    [409, 'conflict'],
    [415, 'unsupported_media_type'],
    [429, 'quota_exceeded'],
    [429, 'trial_quota_exceeded'],
  ])('%i %s: nothing more is sent by this page, events are kept for the next', async (status, code) => {
    page.replies = [refusal(status, code)];
    const client = page.client();
    client.track('a');
    await client.flush();
    client.track('b');
    await client.flush();
    page.fire('online');
    page.hide();
    await page.pass(2 * hour);
    expect(page.requests).toHaveLength(1);
    expect(page.beacons).toEqual([]);
    expect(page.gaveUp).toEqual([]);
    expect(page.warnings).toMatchObject([[expect.stringContaining('refused'), code]]);
    page.load();
    await page.client().flush();
    expect(page.items().map((item) => item.event)).toEqual(['a', 'a', 'b']);
  });

  test.each([
    [400, 'invalid_json'],
    [422, 'validation_failed'],
  ])('%i %s would be said again: the batch is given up aloud, the next goes on', async (status, code) => {
    page.replies = [refusal(status, code)];
    const client = page.client();
    const id = client.track('a');
    await client.flush();
    client.track('b');
    await client.flush();
    expect(page.items().map((item) => item.event)).toEqual(['a', 'b']);
    expect(page.gaveUp).toEqual([{ reason: 'refused', ids: [id], code }]);
    expect(page.warned('given up')).toBe(1);
  });

  test('413: half of the events, then more again', async () => {
    const most = 3;
    const small: Reply = (request) => (request.body.events.length > most ? refusal(413, 'payload_too_large') : accepted(request));
    page.replies = Array.from({ length: 20 }, () => small);
    const client = page.client({ flushAt: 100 });
    for (let i = 0; i < 12; i++) client.track(`e${i}`);
    await client.flush();
    expect(page.requests.map(({ body }) => body.events.length)).toEqual([12, 6, 3, 6, 3, 6, 3, 3]);
    expect(page.gaveUp).toEqual([]);
    page.replies = [];
    for (let i = 0; i < 12; i++) client.track(`e${i}`);
    await client.flush();
    expect(page.requests.slice(8).map(({ body }) => body.events.length)).toEqual([12]);
  });

  test('413 for a single event: it is given up aloud', async () => {
    page.replies = [refusal(413, 'payload_too_large')];
    const client = page.client();
    client.track('a');
    await client.flush();
    client.track('b');
    await client.flush();
    expect(page.items().map((item) => item.event)).toEqual(['a', 'b']);
    expect(page.gaveUp).toMatchObject([{ reason: 'refused', code: 'payload_too_large' }]);
  });

  test('409 privacy_job_active is repeated', async () => {
    page.replies = [refusal(409, 'privacy_job_active', {}, { retryable: true })];
    page.client().track('a');
    await page.pass(8 * second);
    expect(page.requests).toHaveLength(2);
  });

  test('X-Should-Retry: false is obeyed', async () => {
    page.replies = [refusal(500, 'internal', { 'X-Should-Retry': 'false' })];
    page.client().track('a');
    await page.pass(hour);
    expect(page.requests).toHaveLength(1);
  });
});

describe('a network that lets nothing through', () => {
  const blocked = (n: number): Reply[] => Array.from({ length: n }, () => 'lost' as const);

  test('after five attempts that failed at once the page stops, says so once, and keeps its events', async () => {
    page.replies = blocked(50);
    const client = page.client();
    client.track('a');
    await page.pass(60 * second);
    client.track('b');
    void client.flush();
    page.hide();
    await page.pass(2 * hour);
    expect(page.requests).toHaveLength(5);
    expect(page.beacons).toEqual([]);
    expect(page.warned('blocked')).toBe(1);
    page.replies = [];
    page.load();
    page.client();
    await page.pass(40 * second);
    expect(page.items().slice(5).map((item) => item.event)).toEqual(['a', 'b']);
  });

  test('is not what a server is that has answered once', async () => {
    const client = page.client();
    client.track('a');
    await client.flush();
    page.replies = blocked(7);
    client.track('b');
    await page.pass(200 * second);
    expect(page.requests).toHaveLength(9);
    expect(page.warned('blocked')).toBe(0);
  });

  test('offline: nothing is tried, and what waits is sent when the network is back', async () => {
    page.online = false;
    const client = page.client();
    client.track('a');
    void client.flush();
    await page.pass(hour);
    expect(page.requests).toHaveLength(0);
    page.hide();
    expect(page.beacons).toEqual([]);
    page.online = true;
    page.fire('online');
    await page.pass();
    expect(page.items().map((item) => item.event)).toEqual(['a']);
  });
});
