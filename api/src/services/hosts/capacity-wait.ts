// Repeats a request that lacks host capacity while sleeps and destroys in progress may free it.
// Bounded by the caller's deadline and by a number of attempts.
import { CodedError } from '../../rules/coded-error.ts';
import { listLeaving } from '../../store/hosts/hosts.ts';
import type { ServiceContext } from '../context/context.ts';

const ATTEMPTS_MAX = 4;

/** Runs `attempt` until it has capacity, the signal aborts, or no capacity is about to be free. */
export async function withCapacity<T>(
  { db, changes }: Pick<ServiceContext, 'db' | 'changes'>,
  answer: { respondAsync: boolean; signal: AbortSignal },
  attempt: () => Promise<T>,
): Promise<T> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof CodedError) || error.code !== 'insufficient_capacity') throw error;
      if (answer.respondAsync || answer.signal.aborted || attempts === ATTEMPTS_MAX) throw error;
      const leaving = await listLeaving(db);
      if (leaving.length === 0) throw error;
      const watches = leaving.map((id) => changes.watch(id));
      try {
        // Again: one that ended between the list and its watch is never notified.
        const remaining = new Set(await listLeaving(db));
        if (!leaving.every((id) => remaining.has(id))) continue;
        const over = new AbortController();
        const signal = AbortSignal.any([answer.signal, over.signal]);
        await Promise.race(watches.map((watch) => watch.next(signal)));
        over.abort();
      } finally {
        for (const watch of watches) watch.close();
      }
    }
  }
}
