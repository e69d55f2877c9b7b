import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A real server with a data folder of its own. */
export interface ActionPulse {
  url: string;
  browserToken: string;
  /** Returns how many events of each name are stored. */
  counts(): Promise<Record<string, number>>;
  /** Returns the stored events of a name, as the query shows them. */
  events(name: string): Promise<Record<string, unknown>[]>;
  /** Returns the events of a chunk of a recording, as they were sent. */
  chunk(session: string, number: number): Promise<string>;
  stop(): Promise<void>;
}

/** Builds the server (or takes the binary that ACTIONPULSE_BINARY names), makes a data folder and serves it. */
export async function startActionPulse(): Promise<ActionPulse> {
  const folder = mkdtempSync(join(tmpdir(), 'actionpulse-browser-'));
  const binary = process.env['ACTIONPULSE_BINARY'] ?? build(folder);
  const data = join(folder, 'data');
  const made = JSON.parse(execFileSync(binary, ['init', '--data', data, '--json'], { encoding: 'utf8' }));
  // The server takes nothing on a disk that is nearly full, which is not what is tested here.
  const room = ['--storage.min_free_bytes=0', '--storage.min_free_percent=0'];
  const server = spawn(binary, ['serve', '--data', data, '--listen', '127.0.0.1:0', ...room], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()));
  const url = await new Promise<string>((resolve, reject) => {
    server.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
    createInterface(server.stdout).on('line', (line) => {
      const found = /listening on (http:\S+)/.exec(line);
      if (found?.[1]) resolve(found[1]);
    });
  });
  const query = async (body: Record<string, unknown>): Promise<{ items: Record<string, unknown>[] }> => {
    const response = await fetch(`${url}/api/v1/projects/${made.project_id}/query`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${made.access_token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ from: '2020-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z', ...body }),
    });
    if (!response.ok) throw new Error(`query: ${response.status} ${await response.text()}`);
    return response.json() as Promise<{ items: Record<string, unknown>[] }>;
  };
  return {
    url,
    browserToken: made.browser_token,
    async counts() {
      const { items } = await query({ type: 'breakdown', by: 'event', limit: 200 });
      return Object.fromEntries(items.map(({ key, value }) => [key as string, value as number]));
    },
    events: async (name) => (await query({ type: 'events', event: name, limit: 200 })).items,
    async chunk(session, number) {
      const path = `/api/v1/projects/${made.project_id}/replays/${encodeURIComponent(session)}/chunks/${number}`;
      const response = await fetch(url + path, { headers: { Authorization: `Bearer ${made.access_token}` } });
      if (!response.ok) throw new Error(`chunk: ${response.status} ${await response.text()}`);
      return response.text();
    },
    async stop() {
      server.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function build(folder: string): string {
  const binary = join(folder, 'actionpulse');
  const root = new URL('../../../..', import.meta.url).pathname;
  execFileSync('go', ['build', '-o', binary, './cmd/actionpulse'], { cwd: root, stdio: 'inherit' });
  return binary;
}
