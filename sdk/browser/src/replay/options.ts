import type { Rrweb } from './rrweb.js';

/** How a page is recorded. */
export interface ReplayOptions {
  /** Loads rrweb. Default: `import('rrweb')`. */
  load?: () => Promise<Rrweb>;
  /**
   * Options of rrweb's `record`, over these: every input is masked, elements of
   * the class `ap-block` are left out, text within `ap-mask` is masked.
   */
  rrweb?: Record<string, unknown>;
  /** Milliseconds until what was recorded is made a chunk. Default 10,000. */
  chunkInterval?: number;
  /** Bytes after which it is made a chunk at once. Default 512 KiB. */
  chunkBytes?: number;
  /** The most bytes kept that are not sent yet; the oldest chunks are given up. Default 20 MiB. */
  maxBufferBytes?: number;
}

/** Options with every default filled in. */
export type ReplaySettings = Required<ReplayOptions>;

export function withDefaults(options: ReplayOptions): ReplaySettings {
  return {
    load: () => import('rrweb') as unknown as Promise<Rrweb>,
    chunkInterval: 10_000,
    chunkBytes: 512 << 10,
    maxBufferBytes: 20 << 20,
    ...options,
    rrweb: {
      maskAllInputs: true,
      maskTextClass: 'ap-mask',
      blockClass: 'ap-block',
      ignoreClass: 'ap-ignore',
      ...options.rrweb,
    },
  };
}
