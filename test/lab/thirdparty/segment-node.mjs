// Sends events with Segment's client for Node, as the lab asks.
import { Analytics } from '@segment/analytics-node'

const { ACTIONPULSE_URL, ACTIONPULSE_KEY, LAB_EVENTS, LAB_BATCH } = process.env
const analytics = new Analytics({ writeKey: ACTIONPULSE_KEY, host: ACTIONPULSE_URL, ...(Number(LAB_BATCH) > 0 && { flushAt: Number(LAB_BATCH) }) })
analytics.on('error', (e) => console.error('segment-node:', e.code, e.reason))
for (let i = 0; i < Number(LAB_EVENTS); i++) analytics.track({ userId: 'ada', event: `lab event ${i}` })
await analytics.closeAndFlush({ timeout: 120_000 })
