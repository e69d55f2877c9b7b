import type { Rrweb } from '../../src/replay/index.js';

/** An event of rrweb. */
export interface Event {
  type: number;
  timestamp: number;
  data?: unknown;
}

/** rrweb as far as it matters here: a whole page at the start and whenever it is asked for. */
export class FakeRrweb implements Rrweb {
  options: Record<string, unknown> | undefined;
  snapshots = 0;
  size = 10;
  record = Object.assign(
    (options: Record<string, unknown>) => {
      this.options = options;
      this.snapshot();
      return () => (this.options = undefined);
    },
    { takeFullSnapshot: () => this.snapshot() },
  );

  /** The page changes. */
  change(text = ''): void {
    this.emit({ type: 3, timestamp: Date.now(), data: { source: 0, text } });
  }
  /** The visitor clicks. */
  click(): void {
    this.emit({ type: 3, timestamp: Date.now(), data: { source: 2 } });
  }
  private snapshot(): void {
    this.snapshots++;
    this.emit({ type: 4, timestamp: Date.now(), data: { href: 'x' } });
    this.emit({ type: 2, timestamp: Date.now(), data: { node: 'x'.repeat(this.size) } });
  }
  private emit(event: Event): void {
    (this.options?.['emit'] as ((event: Event) => void) | undefined)?.(event);
  }
}
