// Sends events with PostHog's client for Node, as the lab asks.
import { PostHog } from 'posthog-node'

const { ACTIONPULSE_URL, ACTIONPULSE_KEY, LAB_EVENTS, LAB_BATCH } = process.env
const posthog = new PostHog(ACTIONPULSE_KEY, { host: ACTIONPULSE_URL, ...(Number(LAB_BATCH) > 0 && { flushAt: Number(LAB_BATCH) }) })
posthog.on('error', (e) => console.error('posthog-node:', e))
for (let i = 0; i < Number(LAB_EVENTS); i++) posthog.capture({ distinctId: 'ada', event: `lab event ${i}` })
await posthog.shutdown(120_000)
