// What users' code may and may not say. The compiler is the test: each line
// under @ts-expect-error must be an error, and all others none.
import { type Client, createClient, type GaveUp, type Options, type Rejection } from '@actionpulse/browser';
import { type Replay, startReplay } from '@actionpulse/browser/replay';

const options: Options = {
  url: 'https://events.example.com',
  key: 'apb_x',
  consent: 'pending',
  context: () => ({ build: 7 }),
  onRejected: ({ index, eventId, code }: Rejection) => console.log(index + 1, eventId.length, code),
  onGaveUp: ({ reason, ids, code }: GaveUp) => console.log(reason === 'too_old', ids.length, code?.length),
  logger: console,
};
export const client: Client = createClient(options);

export const id: string = client.track('bought', { price: 3, items: ['lamp'] }, { ts: Date.now(), eventId: 'x' });
client.track('bare');
client.identify('ada', { plan: 'pro' });
client.setConsent('granted');
export const flushed: Promise<void> = client.flush();
export const replay: Promise<Replay> = startReplay(client, { load: () => import('rrweb'), rrweb: { sampling: {} } });

// @ts-expect-error the key is required
createClient({ url: 'https://events.example.com' });
// @ts-expect-error there is no such consent
createClient({ url: 'https://events.example.com', key: 'apb_x', consent: 'maybe' });
// @ts-expect-error nor such an option
createClient({ url: 'https://events.example.com', key: 'apb_x', flushEvery: 5 });
// @ts-expect-error a name is text
client.track(7);
// @ts-expect-error properties are an object
client.track('bought', 'lamp');
// @ts-expect-error a time is milliseconds
client.track('bought', {}, { ts: new Date() });
// @ts-expect-error a visitor cannot choose to be asked later
client.setConsent('pending');
// @ts-expect-error the reason is one of a few
export const reason: GaveUp['reason'] = 'lost';
// @ts-expect-error settings are read only through the extension
client.settings;
