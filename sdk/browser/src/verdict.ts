import { member } from './json.js';

/** What came back. Status 0 is no answer: refused, reset, timed out, cut short, or not what was promised. */
export interface Answer {
  status: number;
  /** The JSON of the body; undefined if it is none. */
  body?: unknown;
  headers?: Pick<Headers, 'get'>;
}

/**
 * What to do next: send the same again; send less; give up this request, which
 * would be refused again; or send no more of this kind until the page is loaded
 * anew.
 */
export type Action = 'repeat' | 'shrink' | 'drop' | 'stop';

/** The judgement on one answer that is not a success. */
export interface Verdict {
  action: Action;
  /** error.code, else the status, else `no_answer`. */
  code: string;
  /** For a repeat: whether the request may have been carried out. */
  unknown: boolean;
  /** Milliseconds to wait exactly, if the server named them. */
  wait: number | undefined;
}

/** Statuses and codes that may be repeated. No code: the answer is a proxy's, not in the server's envelope. */
const repeatable = /^(0|408(request_timeout)?|409privacy_job_active|429(rate_limited)?|500(internal)?|50[24]|503(unavailable)?)$/;

/** Judges an answer by the retry table. now is used to read a Retry-After that is a date. */
export function judge(answer: Answer, now: number): Verdict {
  const { status, body, headers } = answer;
  const error = member(body, 'error');
  const code = String(member(error, 'code') ?? '');
  const action = decide(status, code, headers?.get('X-Should-Retry'));
  const applied = member(member(error, 'details'), 'applied');
  return {
    action,
    code: code || String(status || 'no_answer'),
    unknown: code ? status === 503 && applied !== false : status !== 429,
    wait: action === 'repeat' ? parseRetryAfter(headers?.get('Retry-After'), now) : undefined,
  };
}

function decide(status: number, code: string, shouldRetry: string | null | undefined): Action {
  if (repeatable.test(status + code)) return shouldRetry === 'false' ? 'stop' : 'repeat';
  if (status === 413) return 'shrink';
  // A proxy that says 400 has not judged these events; the server has.
  if ((status === 400 || status === 422) && code) return 'drop';
  // The table is silent about these; about the others the header says nothing new.
  return status > 422 && status !== 429 && code && shouldRetry === 'true' ? 'repeat' : 'stop';
}

/**
 * Reads a Retry-After header, whole seconds or an HTTP date, as milliseconds.
 * Undefined if it is absent or cannot be read; a date that has passed is 0.
 */
export function parseRetryAfter(header: string | null | undefined, now: number): number | undefined {
  const text = (header ?? '').trim();
  if (/^\d+$/.test(text)) return +text * 1000;
  const date = Date.parse(text);
  // Date.parse takes much else for a date; an HTTP date begins with the name of a day.
  return /^[A-Z]/.test(text) && date ? Math.max(0, date - now) : undefined;
}

const first = 1_000;
const longest = 30_000;
const jitter = 0.25;

/** Returns the wait after the n-th failure in a row, n from 1. random is in [0, 1). */
export function backoff(n: number, random: number): number {
  return Math.min(longest, first * 2 ** (n - 1)) * (1 - jitter + 2 * jitter * random);
}
