// Callers that wait for a network slot, served in order.
import type { Slot } from './slot.ts';

export class SlotWaiters {
  readonly #waiters: PromiseWithResolvers<Slot>[] = [];

  get size(): number {
    return this.#waiters.length;
  }

  /** Resolves with a slot served later. An abort ends the wait. */
  wait(signal: AbortSignal): Promise<Slot> {
    const waiter = Promise.withResolvers<Slot>();
    const giveUp = (): void => {
      const index = this.#waiters.indexOf(waiter);
      if (index >= 0) this.#waiters.splice(index, 1);
      waiter.reject(signal.reason);
    };
    signal.addEventListener('abort', giveUp, { once: true });
    this.#waiters.push(waiter);
    return waiter.promise.finally(() => signal.removeEventListener('abort', giveUp));
  }

  /** Hands out the idle slots, oldest first, while callers wait. */
  serveFrom(idle: Slot[]): void {
    while (this.#waiters.length > 0 && idle.length > 0) this.#waiters.shift()?.resolve(idle.shift() as Slot);
  }

  rejectAll(reason: unknown): void {
    for (const waiter of this.#waiters.splice(0)) waiter.reject(reason);
  }
}
