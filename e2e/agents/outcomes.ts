// Expected outcome of a fault during a turn of the scripted agent, one cell for each fault and
// moment. In every cell a message takes effect at most once, replies that a caller has read keep
// their cursors, no process of a failed turn remains, and the next message works.

/** Moments of a turn at which a fault is injected. */
export const MOMENTS = ['sending', 'streaming', 'tool running', 'waiting', 'interrupting'] as const;
export type Moment = (typeof MOMENTS)[number];

export const FAULTS = [
  'kill bridge',
  'kill agent',
  'kill guest daemon',
  'kill host daemon',
  'kill API',
  'kill Postgres',
  'kill VM',
  'sleep and wake',
  'power cut',
] as const;
export type Fault = (typeof FAULTS)[number];

interface Outcome {
  /** Final states of the turn: a list, since a fault may come after the end. */
  states: readonly string[];
  /** Reasons of a failed turn. */
  reasons: readonly string[];
  /** The session must be recovered before the next message. */
  recovers: boolean;
}

/** The turn goes on as if nothing had happened. */
const UNHARMED: { readonly [moment in Moment]: Outcome } = {
  sending: { states: ['completed', 'failed'], reasons: ['not_delivered'], recovers: false },
  streaming: { states: ['completed'], reasons: [], recovers: false },
  'tool running': { states: ['completed'], reasons: [], recovers: false },
  waiting: { states: ['completed'], reasons: [], recovers: false },
  interrupting: { states: ['canceled'], reasons: [], recovers: false },
};

/** The turn fails for the reason, unless it ended before the fault. */
function ends(reason: string): { readonly [moment in Moment]: Outcome } {
  const failed: Outcome = { states: ['failed'], reasons: [reason], recovers: true };
  return {
    sending: { states: ['completed', 'failed'], reasons: [reason, 'not_delivered'], recovers: true },
    streaming: failed,
    'tool running': failed,
    waiting: failed,
    interrupting: { ...failed, states: ['failed', 'canceled'] },
  };
}

export const OUTCOMES: { readonly [fault in Fault]: { readonly [moment in Moment]: Outcome } } = {
  'kill bridge': ends('bridge_ended'),
  'kill agent': ends('agent_ended'),
  'kill guest daemon': UNHARMED,
  'kill host daemon': UNHARMED,
  'kill API': UNHARMED,
  'kill Postgres': UNHARMED,
  'kill VM': ends('machine_lost'),
  'sleep and wake': UNHARMED,
  'power cut': ends('machine_lost'),
};
