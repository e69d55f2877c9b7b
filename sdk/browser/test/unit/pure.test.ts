import { readFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { readTrackAnswer } from '../../src/batch.js';
import { newID } from '../../src/id.js';
import { fromJSON, toJSON } from '../../src/json.js';
import { backoff, judge, parseRetryAfter } from '../../src/verdict.js';
import { version } from '../../src/version.js';

const canonical = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test('ids are canonical UUIDs, in insecure contexts too', () => {
  expect(newID()).toMatch(canonical);
  const { crypto } = globalThis;
  vi.stubGlobal('crypto', { getRandomValues: crypto.getRandomValues.bind(crypto) });
  const ids = Array.from({ length: 100 }, newID);
  for (const id of ids) expect(id).toMatch(canonical);
  expect(new Set(ids).size).toBe(100);
});

test('the version is the one of the package', () => {
  expect(version).toBe(JSON.parse(readFileSync('package.json', 'utf8')).version);
});

test.each([
  ['a cut emoji', 'ok \ud83d', 'ok \ufffd'],
  ['the other half', '\ude00!', '\ufffd!'],
  ['a whole emoji', '😀', '😀'],
  ['a backslash before what looks like an escape', '\\ud83d', '\\ud83d'],
  ['other escapes', '"\n\u0001\\', '"\n\u0001\\'],
])('JSON of %s', (_name, text, want) => {
  expect(fromJSON(toJSON({ text }) ?? '')).toEqual({ text: want });
  expect(fromJSON(toJSON({ [text]: 1 }) ?? '')).toEqual({ [want]: 1 });
});

test('what has no JSON is undefined and does not throw', () => {
  const cycle: Record<string, unknown> = {};
  cycle['self'] = cycle;
  for (const value of [cycle, 1n, () => 1, undefined]) expect(toJSON(value)).toBeUndefined();
});

const envelope = (code: string, details = {}): unknown => ({ error: { code, message: '', details } });

test.each([
  // no answer, and answers of proxies
  [0, undefined, 'repeat', true],
  [408, undefined, 'repeat', true],
  [429, undefined, 'repeat', false],
  [500, undefined, 'repeat', true],
  [502, undefined, 'repeat', true],
  [503, undefined, 'repeat', true],
  [504, undefined, 'repeat', true],
  [400, undefined, 'stop', true],
  [301, undefined, 'stop', true],
  [418, undefined, 'stop', true],
  [520, undefined, 'stop', true],
  // the server's
  [408, envelope('request_timeout'), 'repeat', false],
  [429, envelope('rate_limited'), 'repeat', false],
  [500, envelope('internal'), 'repeat', false],
  [503, envelope('unavailable'), 'repeat', true],
  [503, envelope('unavailable', { applied: 'unknown' }), 'repeat', true],
  [503, envelope('unavailable', { applied: false }), 'repeat', false],
  [409, envelope('privacy_job_active'), 'repeat', false],
  [409, envelope('conflict'), 'stop', false],
  [429, envelope('quota_exceeded'), 'stop', false],
  [429, envelope('trial_quota_exceeded'), 'stop', false],
  [504, envelope('query_timeout'), 'stop', false],
  [400, envelope('invalid_json'), 'drop', false],
  [422, envelope('validation_failed'), 'drop', false],
  [401, envelope('unauthenticated'), 'stop', false],
  [402, envelope('payment_required'), 'stop', false],
  [403, envelope('forbidden'), 'stop', false],
  [404, envelope('not_found'), 'stop', false],
  [405, envelope('method_not_allowed'), 'stop', false],
  [415, envelope('unsupported_media_type'), 'stop', false],
  [413, envelope('payload_too_large'), 'shrink', false],
  [413, undefined, 'shrink', true],
] as const)('%i %j: %s, outcome unknown %s', (status, body, action, unknown) => {
  expect(judge({ status, body }, 0)).toMatchObject({ action, unknown });
});

test.each([
  [500, 'internal', 'false', 'stop'],
  [500, 'internal', 'true', 'repeat'],
  [425, 'new_code', 'true', 'repeat'],
  [501, 'new_code', 'true', 'repeat'],
  [501, 'new_code', null, 'stop'],
  [429, 'quota_exceeded', 'true', 'stop'],
  [401, 'unauthenticated', 'true', 'stop'],
] as const)('%i %s with X-Should-Retry %s: %s', (status, code, header, action) => {
  const headers = { get: (name: string) => (name === 'X-Should-Retry' ? header : null) };
  expect(judge({ status, body: envelope(code), headers }, 0).action).toBe(action);
});

test.each([
  ['7', 7_000],
  [' 0 ', 0],
  ['Fri, 01 May 2026 10:00:30 GMT', 30_000],
  ['Friday, 01-May-26 10:00:30 GMT', 30_000],
  ['Fri, 01 May 2026 09:00:00 GMT', 0],
  ['soon', undefined],
  ['-5', undefined],
  ['1.5', undefined],
  ['', undefined],
  [null, undefined],
])('Retry-After %j is %j ms', (header, want) => {
  expect(parseRetryAfter(header, Date.parse('2026-05-01T10:00:00Z'))).toBe(want);
});

test('delays double from a second to 30, each by up to a quarter more or less', () => {
  expect([1, 2, 3, 4, 5, 6, 60].map((n) => backoff(n, 0.5))).toEqual([1, 2, 4, 8, 16, 30, 30].map((s) => s * 1000));
  expect(backoff(1, 0)).toBe(750);
  expect(backoff(6, 1)).toBe(37_500);
});

const rejection = (index: unknown): unknown => ({ index, event_id: null, code: 'invalid_event', message: 'm' });

test.each([
  ['all accepted', { accepted: 3, duplicates: 0, rejected: [] }, true],
  ['repeats', { accepted: 3, duplicates: 3, rejected: [] }, true],
  ['one rejected', { accepted: 2, duplicates: 0, rejected: [rejection(1)] }, true],
  ['all rejected', { accepted: 0, duplicates: 0, rejected: [rejection(2), rejection(0), rejection(1)] }, true],
  ['one too few', { accepted: 2, duplicates: 0, rejected: [] }, false],
  ['one too many', { accepted: 3, duplicates: 0, rejected: [rejection(0)] }, false],
  ['an item twice', { accepted: 1, duplicates: 0, rejected: [rejection(0), rejection(0)] }, false],
  ['an item that was not sent', { accepted: 2, duplicates: 0, rejected: [rejection(3)] }, false],
  ['no index', { accepted: 2, duplicates: 0, rejected: [{}] }, false],
  ['no object', { accepted: 2, duplicates: 0, rejected: [null] }, false],
  ['more repeats than items', { accepted: 3, duplicates: 4, rejected: [] }, false],
  ['no repeats', { accepted: 3, rejected: [] }, false],
  ['text for numbers', { accepted: '3', duplicates: 0, rejected: [] }, false],
  ['no list', { accepted: 3, duplicates: 0 }, false],
  ['nothing', undefined, false],
  ['a list', [], false],
])('an answer with %s accounts for 3 items: %s', (_name, body, whole) => {
  expect(readTrackAnswer(body, 3) !== undefined).toBe(whole);
});
