// The approvals that an agent waits for, by its native request ids.
import type { AgentPrompt, Decision, DriverEvents } from './driver.ts';

/** Approvals that one agent may have open; further requests are declined. */
export const OPEN_PROMPTS = 64;

export class OpenPrompts {
  readonly #events: DriverEvents;
  readonly #withdrawals = new Map<string | number, () => void>();

  constructor(events: DriverEvents) {
    this.#events = events;
  }

  get isFull(): boolean {
    return this.#withdrawals.size >= OPEN_PROMPTS;
  }

  /** Requests a decision. `respond` is called once at most, and never after a withdrawal. */
  ask(id: string | number, prompt: AgentPrompt, respond: (decision: Decision) => void): void {
    if (this.isFull) return respond('decline');
    let isAnswered = false;
    const withdraw = this.#events.ask(prompt, (decision) => {
      isAnswered = true;
      if (this.#withdrawals.delete(id)) respond(decision);
    });
    if (!isAnswered) this.#withdrawals.set(id, withdraw);
  }

  withdraw(id: string | number): void {
    const withdraw = this.#withdrawals.get(id);
    this.#withdrawals.delete(id);
    withdraw?.();
  }

  withdrawAll(): void {
    for (const id of [...this.#withdrawals.keys()]) this.withdraw(id);
  }
}
