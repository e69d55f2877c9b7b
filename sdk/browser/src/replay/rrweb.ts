/** What of rrweb is used here, so that its types need not be there. */
export interface Rrweb {
  record: ((options: Record<string, unknown>) => (() => void) | undefined) & {
    takeFullSnapshot(isCheckout?: boolean): void;
  };
}

/** An event of rrweb; of its data only what is looked at here. */
export interface RrwebEvent {
  type: number;
  timestamp: number;
  data?: { source?: number } | undefined;
}

/** rrweb's number of the event that holds the whole page. */
export const fullSnapshot = 2;
/** rrweb's number of events that others define. */
export const custom = 5;

const incremental = 3;
/** Sources of incremental events that the visitor causes: mouse, clicks, scrolling, input, touch, drags. */
const interactions = [1, 2, 3, 5, 6, 12];

/** Reports whether the visitor has done something. */
export function isInteraction({ type, data }: RrwebEvent): boolean {
  return type === incremental && interactions.includes(data?.source ?? -1);
}
