/**
 * Session replay: records the page with rrweb and sends it in chunks.
 *
 * What holds:
 * - rrweb is loaded when recording starts, and only then;
 * - a chunk gets its number when it is stored, before it is first sent, and
 *   keeps it over attempts and reloads; no two chunks of a session share one;
 * - when a chunk is lost, the next one begins with the whole page, so that
 *   playback has a gap and no more;
 * - nothing is recorded without consent; every input is masked by default.
 */
import type { Client } from '../client.js';
import type { GaveUpReason } from '../options.js';
import { type Chunk, openChunkStore } from './chunk.js';
import { createReplaySource } from './delivery.js';
import { type ReplayOptions, withDefaults } from './options.js';
import { createRecorder, type Recorder } from './recorder.js';

export type { ReplayOptions } from './options.js';
export type { Rrweb } from './rrweb.js';

/** A recording under way. */
export interface Replay {
  /** Whether the page is being recorded now: not without consent, nor after a stop. */
  recording(): boolean;
  /** Makes what was recorded so far a chunk, and sends. */
  flush(): Promise<void>;
  /** Stops for good. What was recorded is still sent. */
  stop(): Promise<void>;
}

/** Whole pages that are refused in a row before recording stops. */
const maxRefused = 2;

const running = new WeakMap<Client, Replay>();

/**
 * Records the page of a client as long as consent is granted. Called again, it
 * returns the recording that is under way. Resolves when rrweb was loaded and
 * recording has begun, or at once if it may not begin yet.
 */
export async function startReplay(client: Client, options: ReplayOptions = {}): Promise<Replay> {
  const known = running.get(client);
  if (known) return known;
  const { extension } = client;
  const settings = withDefaults(options);
  const { log } = extension.settings;
  const store = openChunkStore(`actionpulse:${extension.settings.name}:replay`);
  let recorder: Recorder | undefined;
  let ended = false;
  let refused = 0;
  let beginning: Promise<void> | undefined;

  const failed = (why: string): void => {
    log.warn('recording has stopped', why);
    ended = true;
    halt();
  };

  const halt = (): void => {
    recorder?.stop();
    recorder = undefined;
  };

  const lost = (chunk: Chunk, reason: GaveUpReason | 'conflict'): void => {
    refused = reason === 'refused' && chunk.anchor ? refused + 1 : 0;
    if (refused >= maxRefused) return failed('the server refuses the whole page');
    // Numbers that others have used are of no use. The next session has its own, and begins with the whole page.
    if (reason !== 'conflict') recorder?.lost(chunk.session);
    else if (extension.session(false) === chunk.session) extension.endSession();
  };

  const stored = async (): Promise<void> => {
    await source.evict(settings.maxBufferBytes);
    await client.flush();
  };

  const begin = async (): Promise<void> => {
    if (ended || recorder || client.consent() !== 'granted') return;
    const rrweb = await settings.load();
    if (ended || recorder || client.consent() !== 'granted') return;
    recorder = createRecorder({
      extension,
      settings,
      store,
      rrweb,
      who: () => ({ anon_id: client.anonId(), user_id: client.userId() || undefined }),
      stored: () => void stored(),
      failed,
    });
    // It may have failed at its first event.
    if (ended) halt();
  };

  const start = (): Promise<void> =>
    (beginning = (beginning ?? Promise.resolve()).then(begin).catch((error: unknown) => failed(String(error))));

  const source = createReplaySource({ settings: extension.settings, store, lost });
  const replay: Replay = {
    recording: () => recorder !== undefined,
    async flush() {
      await recorder?.cut();
      await client.flush();
    },
    async stop() {
      ended = true;
      await recorder?.cut();
      halt();
    },
  };
  if (typeof document === 'undefined') return replay;
  running.set(client, replay);
  extension.addSource(source);
  extension.onConsent((consent) => {
    if (consent === 'granted') return void start();
    halt();
    if (consent === 'denied') store.clear().catch((error: unknown) => log.warn('a recording was not removed', error));
  });
  document.addEventListener('visibilitychange', () => void recorder?.cut());
  addEventListener('pagehide', () => void recorder?.cut());
  await start();
  return replay;
}
