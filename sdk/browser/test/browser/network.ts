import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request as send, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request that a page has sent, and what came of it. */
export interface Seen {
  method: string;
  path: string;
  key: string | null;
  authorization: string | undefined;
  contentType: string | undefined;
  body: string;
  at: number;
  /** The server's answer; undefined as long as there is none. */
  status?: number;
  answer?: string;
}

/** What is done to a request: passed on, passed on without the answer coming back, or changed on its way back. */
export type Fault = 'pass' | 'lose' | { status: number; headers: Record<string, string>; body: string };

/** A chunk that the server has taken in, as it was sent first. */
export interface StoredChunk {
  session_id: string;
  chunk: number;
  events: { type: number; data?: unknown }[];
  text: string;
}

/** The network between pages and the server. It records every request and can break them. */
export class Network {
  readonly seen: Seen[] = [];
  /** Faults of the POSTs to come, in order; after them all pass. */
  faults: Fault[] = [];
  concurrent = 0;
  mostConcurrent = 0;
  url = '';
  private server: Server | undefined;
  private waiting: (() => void)[] = [];

  constructor(private readonly target: string) {}

  async start(): Promise<this> {
    this.server = createServer((incoming, answer) => void this.take(incoming, answer));
    this.url = await listen(this.server);
    return this;
  }

  stop(): void {
    this.server?.closeAllConnections();
    this.server?.close();
  }

  /** The POSTs that were seen, to one path. */
  posts(path = '/v1/track'): Seen[] {
    return this.seen.filter((seen) => seen.method === 'POST' && seen.path === path);
  }

  /** The chunks of recordings that the server has said to be new, in the order of its answers. */
  get chunks(): StoredChunk[] {
    const first = ({ status, answer }: Seen): boolean => status === 202 && answer !== undefined && !JSON.parse(answer).duplicate;
    return this.posts('/v1/replay')
      .filter(first)
      .map(({ body }) => ({ ...JSON.parse(body), text: body }));
  }

  /** Waits until what was seen satisfies a condition; it is looked at whenever something has happened. */
  async until(what: string, condition: () => boolean): Promise<void> {
    const end = Date.now() + 15_000;
    while (!condition()) {
      const left = end - Date.now();
      if (left <= 0) throw new Error(`it did not happen: ${what}\n${JSON.stringify(this.seen, null, 1).slice(0, 4000)}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.waiting.push(() => (clearTimeout(timer), resolve()));
      });
    }
  }

  private changed(): void {
    this.waiting.splice(0).forEach((wake) => wake());
  }

  private async take(incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(incoming.url ?? '', 'http://x');
    const { authorization, 'content-type': contentType } = incoming.headers;
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(part as Buffer);
    const body = Buffer.concat(parts).toString();
    const method = incoming.method ?? '';
    const seen: Seen = { method, path: pathname, key: searchParams.get('key'), authorization, contentType, body, at: Date.now() };
    this.seen.push(seen);
    const post = method === 'POST';
    const fault = (post && this.faults.shift()) || 'pass';
    if (post) this.mostConcurrent = Math.max(this.mostConcurrent, ++this.concurrent);
    this.changed();
    const reply = await forward(this.target, incoming, body);
    seen.status = reply.status;
    seen.answer = reply.body;
    if (post) this.concurrent--;
    if (fault === 'lose') incoming.socket.destroy();
    else {
      const changed = fault === 'pass' ? reply : { ...fault, headers: { ...reply.headers, ...fault.headers } };
      delete changed.headers['content-length'];
      answer.writeHead(changed.status, changed.headers).end(changed.body);
    }
    this.changed();
  }
}

interface Reply {
  status: number;
  headers: Record<string, string>;
  body: string;
}

function forward(target: string, incoming: IncomingMessage, body: string): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const { method, url, headers } = incoming;
    const upstream = send(target + url, { method: method ?? 'GET', headers }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers as Record<string, string>,
          body: Buffer.concat(parts).toString(),
        }),
      );
    });
    upstream.on('error', reject);
    upstream.end(body);
  });
}

/** Serves the pages of the tests, from another origin than the API. */
export async function startPages(html: Record<string, string>): Promise<{ url: string; stop: () => void }> {
  const files: Record<string, string> = {
    '/rrweb.js': 'node_modules/rrweb/dist/rrweb.js',
    '/rrweb.umd.js': 'node_modules/rrweb/dist/rrweb.umd.min.cjs',
  };
  const server = createServer((incoming, answer) => {
    const { pathname } = new URL(incoming.url ?? '', 'http://x');
    const page = html[pathname];
    const file = files[pathname] ?? (/^\/dist\/[\w.-]+\.js$/.test(pathname) ? pathname.slice(1) : undefined);
    if (page !== undefined) answer.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page);
    else if (file) answer.writeHead(200, { 'content-type': 'text/javascript' }).end(readFileSync(file));
    else answer.writeHead(404).end();
  });
  const url = await listen(server);
  return { url, stop: () => (server.closeAllConnections(), server.close()) };
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
