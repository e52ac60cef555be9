// Whether the service responds. A restart takes seconds; a longer absence is shown.
import { Observed } from '../rules/page/observed.ts';
import { setClock } from '../ui/clock.ts';

const RESTART_MS = 5_000;
/** Least status of a response that a proxy may give in place of the service. */
const UNAVAILABLE = 502;
/** Header of the service's own decisions, such as a host that does not respond; not of its end. */
const DECIDED = 'ratelimit';

class Connection {
  #failingSince: number | null = null;
  #workedAt: number | null = null;
  /** Time of the last response, while the service does not respond; else null. */
  readonly staleSince = new Observed<number | null>(null);

  /** How often the service has responded again: it may have been updated. */
  readonly returns = new Observed(0);
  /** Whether the last request had no response, even if a retry may have one. */
  isInterrupted = false;

  /** `fetch` that notices interruptions, also those that retries hide. */
  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    try {
      const response = await globalThis.fetch(input, init);
      setClock(Date.parse(response.headers.get('date') ?? ''));
      const isAvailable = response.status < UNAVAILABLE || response.headers.has(DECIDED);
      if (isAvailable && this.isInterrupted) this.returns.set(this.returns.get() + 1);
      this.isInterrupted = !isAvailable;
      return response;
    } catch (error) {
      if (init?.signal?.aborted !== true) this.isInterrupted = true;
      throw error;
    }
  };

  worked(): void {
    this.#failingSince = null;
    this.#workedAt = Date.now();
    this.staleSince.set(null);
  }

  failed(): void {
    const now = Date.now();
    this.#failingSince ??= now;
    if (now - this.#failingSince >= RESTART_MS && this.#workedAt !== null) this.staleSince.set(this.#workedAt);
  }
}

export const connection = new Connection();
