// Limits the bytes of bodies that the process holds: in all, and per org and address. Without it,
// one credential could take gigabytes within its rate limit.
import { addressBlock } from '../rules/access/address-block.ts';
import { CodedError } from '../rules/coded-error.ts';

const MIB = 1_048_576;
const RETRY_AFTER_SECONDS = 1;
/** Shares of the bytes that no other org or address holds: some always remain for the others. */
const ORG_PART = 1 / 2;
/**
 * Without an org. Larger with one: many orgs may be behind one address, and an org has its own.
 */
const ADDRESS_PART = { withOrg: 3 / 4, withoutOrg: 1 / 2 };

/** Whom the bytes of a body count for. */
interface Holder {
  /** Absent: the caller is anonymous, or names no org. */
  orgId?: string | undefined;
  address: string;
}

interface Share {
  key: string;
  name: 'org' | 'address';
  part: number;
}

/** Counts the bytes of bodies; holds none itself. */
export class BytesInFlight {
  readonly #limitMib: number;
  #held = 0;
  readonly #heldByShare = new Map<string, number>();

  /** `limitMib`: of the process (`BERTH_BODIES_IN_FLIGHT_MIB`). */
  constructor(limitMib: number) {
    this.#limitMib = limitMib;
  }

  get held(): number {
    return this.#held;
  }

  /** Starts to count a request. */
  open(holder: Holder): HeldBytes {
    // Most requests hold nothing.
    let shares: readonly Share[] | undefined;
    return new HeldBytes((bytes) => this.#change(bytes, (shares ??= sharesOf(holder))));
  }

  #change(bytes: number, shares: readonly Share[]): void {
    if (bytes > 0) shares.forEach((share) => this.#require(bytes, share));
    this.#held += bytes;
    for (const { key } of shares) {
      const held = (this.#heldByShare.get(key) ?? 0) + bytes;
      if (held === 0) this.#heldByShare.delete(key);
      else this.#heldByShare.set(key, held);
    }
  }

  #require(bytes: number, { key, name, part }: Share): void {
    const mine = this.#heldByShare.get(key) ?? 0;
    if (mine + bytes <= part * (this.#limitMib * MIB - (this.#held - mine))) return;
    throw new CodedError(
      'too_much_in_flight',
      `too many bytes in flight: the bodies of this ${name} may take ${part * 100} % of what others leave of ` +
        `${this.#limitMib} MiB (BERTH_BODIES_IN_FLIGHT_MIB); retry in ${RETRY_AFTER_SECONDS} s`,
      { retryAfterSeconds: RETRY_AFTER_SECONDS },
    );
  }
}

function sharesOf({ orgId, address }: Holder): Share[] {
  const part = orgId === undefined ? ADDRESS_PART.withoutOrg : ADDRESS_PART.withOrg;
  const shares: Share[] = [{ key: addressBlock(address), name: 'address', part }];
  if (orgId !== undefined) shares.push({ key: orgId, name: 'org', part: ORG_PART });
  return shares;
}

/** The counted bytes of one request. */
export class HeldBytes {
  readonly #change: (bytes: number) => void;
  #bytes = 0;

  /** `change` counts more bytes, or fewer. */
  constructor(change: (bytes: number) => void) {
    this.#change = change;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Counts more bytes. Throws `too_much_in_flight` when they exceed a share. */
  add(bytes: number): void {
    this.#change(bytes);
    this.#bytes += bytes;
  }

  /** Idempotent. */
  release(): void {
    if (this.#bytes > 0) this.#change(-this.#bytes);
    this.#bytes = 0;
  }
}
