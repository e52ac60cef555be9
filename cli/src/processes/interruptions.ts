// Reports the begin and the end of sleeps and outages while a process or folder is followed, each
// once.
import type { BerthError } from '@berth/sdk';
import { plainText } from '../output/plain-text.ts';

export class Interruptions {
  readonly #sandboxId: string;
  readonly #say: (text: string) => void;
  readonly #what: string;
  #now: 'asleep' | 'out' | null = null;

  constructor(sandboxId: string, say: (text: string) => void, what = 'process') {
    this.#sandboxId = sandboxId;
    this.#say = say;
    this.#what = what;
  }

  failed(error: BerthError): void {
    const now = error.code === 'sandbox_state_conflict' ? 'asleep' : 'out';
    if (this.#now === now) return;
    this.#now = now;
    this.#say(
      now === 'asleep'
        ? `berth: the sandbox is not awake; the ${this.#what} continues after berth sandbox wake ${this.#sandboxId}`
        : `berth: ${plainText(error.message)}; retrying. The ${this.#what} continues meanwhile`,
    );
  }

  /** Called after each response. */
  over(): void {
    if (this.#now === null) return;
    this.#say(this.#now === 'asleep' ? 'berth: the sandbox is awake' : 'berth: the service responds again');
    this.#now = null;
  }
}
