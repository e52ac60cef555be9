// Elects a tab of the browser to lead. Another takes over when the leader is gone.
import { randomId } from '../rules/random-id.ts';
import { pause } from '../rules/page/pause.ts';

/** Time after which a leader without a renewal is gone, where the browser has no locks. */
const LEASE_MS = 10_000;
const RENEW_MS = 3_000;

/** Runs the work while this tab leads, until the signal aborts. */
export async function whileLeading(
  name: string,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  // Browsers have locks only in secure contexts, which plain HTTP on a network is not.
  const { locks } = navigator as { locks?: LockManager };
  try {
    if (locks === undefined) await whileLeased(name, signal, work);
    else await locks.request(name, { signal }, () => work(signal));
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** A lease in the storage that tabs share. Two tabs may lead for a moment, which does no harm. */
async function whileLeased(
  name: string,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const me = randomId();
  for (;;) {
    while (!signal.aborted && !renew(name, me)) await pause(RENEW_MS, signal);
    if (signal.aborted) return;
    const lost = new AbortController();
    const renewals = setInterval(() => {
      if (!renew(name, me)) lost.abort();
    }, RENEW_MS);
    try {
      await work(AbortSignal.any([signal, lost.signal]));
    } finally {
      clearInterval(renewals);
      release(name, me);
    }
    // The work has ended by itself.
    if (!lost.signal.aborted) return;
  }
}

interface Lease {
  holder: string;
  untilMs: number;
}

/** Takes or renews the lease, unless another tab has it. */
function renew(name: string, me: string): boolean {
  try {
    const { holder, untilMs } = JSON.parse(localStorage.getItem(name) ?? '{}') as Partial<Lease>;
    if (holder !== me && (untilMs ?? 0) > Date.now()) return false;
    localStorage.setItem(name, JSON.stringify({ holder: me, untilMs: Date.now() + LEASE_MS } satisfies Lease));
  } catch {
    // Without storage each tab leads itself.
  }
  return true;
}

function release(name: string, me: string): void {
  try {
    const { holder } = JSON.parse(localStorage.getItem(name) ?? '{}') as Partial<Lease>;
    if (holder === me) localStorage.removeItem(name);
  } catch {
    // Nothing was stored.
  }
}
