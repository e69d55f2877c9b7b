import type { Client } from '../client.js';
import { type Replay, startReplay } from './index.js';
import type { ReplayOptions } from './options.js';
import type { Rrweb } from './rrweb.js';

/**
 * The build for a script tag: the global `actionpulseReplay`. rrweb is the
 * global `rrweb` if the page has it, else it is loaded from `src`.
 */

const page = window as unknown as { actionpulseReplay?: unknown; rrweb?: Rrweb };

function load(src: string): Promise<Rrweb> {
  return new Promise((resolve, reject) => {
    const loaded = (): void => (page.rrweb ? resolve(page.rrweb) : reject(new Error('rrweb is not there')));
    if (page.rrweb || !src) return loaded();
    const script = document.createElement('script');
    script.src = src;
    script.onload = loaded;
    script.onerror = () => reject(new Error('rrweb does not load'));
    document.head.append(script);
  });
}

page.actionpulseReplay = {
  start: (client: Client, options: ReplayOptions & { src?: string } = {}): Promise<Replay> =>
    startReplay(client, { load: () => load(options.src ?? ''), ...options }),
};
