// Reports the begin and the end of sleeps and outages while a process is followed, each once.
import type { BerthError } from '@berth/sdk';
import { plainText } from '../output/plain-text.ts';

export class Interruptions {
  readonly #sandboxId: string;
  readonly #say: (text: string) => void;
  #now: 'asleep' | 'out' | null = null;

  constructor(sandboxId: string, say: (text: string) => void) {
    this.#sandboxId = sandboxId;
    this.#say = say;
  }

  failed(error: BerthError): void {
    const now = error.code === 'sandbox_state_conflict' ? 'asleep' : 'out';
    if (this.#now === now) return;
    this.#now = now;
    this.#say(
      now === 'asleep'
        ? `berth: the sandbox is not awake; the process continues after berth sandbox wake ${this.#sandboxId}`
        : `berth: ${plainText(error.message)}; retrying. The process continues meanwhile`,
    );
  }

  /** Called after each response. */
  over(): void {
    if (this.#now === null) return;
    this.#say(this.#now === 'asleep' ? 'berth: the sandbox is awake' : 'berth: the service responds again');
    this.#now = null;
  }
}
