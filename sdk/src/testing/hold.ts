// Held responses of the test server.
import { HOLD_SECONDS } from '../generated/limits.ts';
import type { RequestContext } from './answering.ts';
import type { TestCall } from './requests/request.ts';

/** Waits for the condition, at most for the time of `Prefer: wait=N`. */
export async function hold(
  { headers }: TestCall,
  { state, signal, headers: answer }: Pick<RequestContext, 'state' | 'signal' | 'headers'>,
  isMet: () => boolean,
): Promise<void> {
  const asked = /\bwait=(\d+)/.exec(headers.get('prefer') ?? '')?.[1];
  if (asked === undefined) return;
  const seconds = Math.min(HOLD_SECONDS.max, Number(asked));
  answer.set('preference-applied', `wait=${seconds}`);
  await state.until(isMet, seconds * 1_000, signal);
}
