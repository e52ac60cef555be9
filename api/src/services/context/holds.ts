// Places of held responses (`Prefer: wait`): shared by orgs, and limited for each sandbox, whose
// host and guest hold a connection for each, or for each credential.
import { HOLDS } from '@berth/contract/route/limits.ts';
import { SharedCapacity, type Release } from '@berth/protocol/shared-capacity.ts';

interface Place {
  orgId: string;
  /** Absent: the response holds nothing in a sandbox. */
  sandboxId?: string | undefined;
  callerId: string;
}

export class Holds {
  readonly #places = new SharedCapacity(HOLDS.perReplica);
  readonly #takenOf = new Map<string, number>();
  readonly #end = new AbortController();

  get taken(): number {
    return this.#places.taken;
  }

  /** Aborts when this replica stops: held responses are sent then. */
  get ending(): AbortSignal {
    return this.#end.signal;
  }

  /** Takes a place; null without a free one: the response is sent at once then. */
  take({ orgId, sandboxId, callerId }: Place): Release | null {
    const holder = sandboxId ?? callerId;
    const most = sandboxId === undefined ? HOLDS.perCredential : HOLDS.perSandbox;
    if (this.ending.aborted || (this.#takenOf.get(holder) ?? 0) >= most) return null;
    const place = this.#places.take(orgId);
    if (typeof place === 'string') return null;
    this.#add(holder, 1);
    let isHeld = true;
    return () => {
      if (isHeld) this.#add(holder, -1);
      isHeld = false;
      place();
    };
  }

  end(): void {
    this.#end.abort();
  }

  #add(holder: string, count: 1 | -1): void {
    const left = (this.#takenOf.get(holder) ?? 0) + count;
    if (left === 0) this.#takenOf.delete(holder);
    else this.#takenOf.set(holder, left);
  }
}
