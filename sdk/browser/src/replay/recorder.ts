import type { Extension } from '../client.js';
import { newID } from '../id.js';
import { toJSON } from '../json.js';
import type { ChunkStore, NewChunk } from './chunk.js';
import type { ReplaySettings } from './options.js';
import { custom, fullSnapshot, isInteraction, type Rrweb, type RrwebEvent } from './rrweb.js';

/** Records this page into chunks. */
export interface Recorder {
  /** Makes what was recorded so far a chunk. */
  cut(): Promise<void>;
  /** A chunk of a session was lost: what comes next holds the whole page, so that playback can go on. */
  lost(session: string): void;
  stop(): void;
}

/** What a recorder needs from outside. */
export interface RecorderParams {
  extension: Extension;
  settings: ReplaySettings;
  store: ChunkStore;
  rrweb: Rrweb;
  /** Who is recorded. */
  who: () => { anon_id: string; user_id: string | undefined };
  /** Called when a chunk was stored. */
  stored: () => void;
  /** Called when recording makes no sense any more. */
  failed: (why: string) => void;
}

/** 5 MiB, the most the server takes, less what surrounds the events. */
const maxChunk = (5 << 20) - (64 << 10);

/** What was recorded and is in no chunk yet. */
interface Piece {
  session: string;
  events: string[];
  size: number;
  ts: number;
  anchor: boolean;
}

export function createRecorder({ extension, settings, store, rrweb, who, stored, failed }: RecorderParams): Recorder {
  const { log } = extension.settings;
  /** Tabs of one session share its numbers; each chunk says which tab it is of. */
  const tab = newID();
  let piece: Piece | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let storing: Promise<void> = Promise.resolve();
  /** The session that the latest event belongs to, and how many of its chunks are known to be lost. */
  let current = '';
  let knownLost: number | undefined;

  const anchor = (): void => rrweb.record.takeFullSnapshot(true);

  const begin = (session: string, ts: number): Piece => {
    const mark = `{"type":${custom},"timestamp":${ts},"data":{"tag":"actionpulse.chunk","payload":{"tab":"${tab}"}}}`;
    timer = setTimeout(() => void cut(), settings.chunkInterval);
    return { session, events: [mark], size: mark.length, ts, anchor: false };
  };

  const save = async (chunk: NewChunk): Promise<void> => {
    // Consent was withdrawn meanwhile.
    if (extension.session(false) === undefined) return;
    try {
      const lost = await store.add(chunk);
      const more = knownLost !== undefined && lost > knownLost;
      if (chunk.session === current) knownLost = lost;
      // Another tab has given up what playback would need.
      if (more && chunk.session === current) anchor();
      stored();
    } catch (error) {
      log.warn('a part of the recording could not be stored', error);
      failed('IndexedDB cannot be used');
    }
  };

  const cut = (): Promise<void> => {
    clearTimeout(timer);
    if (!piece) return storing;
    const { events, ...made } = piece;
    piece = undefined;
    const head = (toJSON({ session_id: made.session, ...who() }) ?? '').slice(0, -1);
    const body = (number: number): string => `${head},"chunk":${number},"events":[${events.join()}]}`;
    return (storing = storing.then(() => save({ ...made, body })));
  };

  /** Events of another session go into another chunk, and a session begins with the whole page. */
  const enter = (session: string, event: RrwebEvent): void => {
    const first = current === '';
    void cut();
    current = session;
    knownLost = undefined;
    if (!first && event.type !== fullSnapshot) anchor();
  };

  const take = (event: RrwebEvent): void => {
    const session = extension.session(isInteraction(event));
    if (session === undefined) return;
    const text = toJSON(event) ?? 'null';
    const size = new TextEncoder().encode(text).length + 1;
    if (size > maxChunk) return failed('an event of the recording is too large');
    if (session !== current) enter(session, event);
    if (piece && piece.size + size > maxChunk) void cut();
    piece ??= begin(session, event.timestamp);
    piece.events.push(text);
    piece.size += size;
    piece.anchor ||= event.type === fullSnapshot;
    if (piece.size >= settings.chunkBytes) void cut();
  };

  const end = rrweb.record({ ...settings.rrweb, emit: take });
  return {
    cut,
    lost(session) {
      if (session !== current) return;
      if (knownLost !== undefined) knownLost++;
      anchor();
    },
    stop() {
      end?.();
      clearTimeout(timer);
      piece = undefined;
    },
  };
}
