// Places of transfers by file links: of an org, shared among its links, and of a sandbox, which
// serves few transfers at once. Places are per process. Errors name no limit of the org.
import { FILE_LINKS } from '@berth/contract/files/links.ts';
import { CallSlots, LineFull } from '@berth/protocol/call-slots.ts';
import { SharedCapacity, type Release } from '@berth/protocol/shared-capacity.ts';
import { CodedError } from '../../rules/coded-error.ts';

const RETRY_AFTER_SECONDS = 1;

export class FileLinkPlaces {
  readonly #orgs = new Map<string, SharedCapacity>();
  readonly #sandboxes = new Map<string, CallSlots>();

  /**
   * Resolves with the release of a place for a transfer, when one is free. Throws
   * `too_many_connections`, or the signal's reason.
   */
  async enter(
    { orgId, sandboxId, linkId }: { orgId: string; sandboxId: string; linkId: string },
    signal: AbortSignal,
  ): Promise<Release> {
    const org = this.#orgs.get(orgId) ?? new SharedCapacity(FILE_LINKS.transfersAtOnce);
    const place = org.take(linkId);
    if (typeof place === 'string') throw tooMany();
    this.#orgs.set(orgId, org);
    const leave = (): void => {
      place();
      if (org.taken === 0 && this.#orgs.get(orgId) === org) this.#orgs.delete(orgId);
    };
    try {
      const release = await this.#enterSandbox(sandboxId, signal);
      return () => {
        release();
        leave();
      };
    } catch (error) {
      leave();
      throw error;
    }
  }

  async #enterSandbox(sandboxId: string, signal: AbortSignal): Promise<Release> {
    const slots = this.#sandboxes.get(sandboxId) ?? new CallSlots(FILE_LINKS.ofSandbox);
    this.#sandboxes.set(sandboxId, slots);
    const forget = (): void => {
      if (slots.isFree && this.#sandboxes.get(sandboxId) === slots) this.#sandboxes.delete(sandboxId);
    };
    const waited = AbortSignal.timeout(FILE_LINKS.waitSeconds * 1_000);
    try {
      const release = await slots.take(AbortSignal.any([signal, waited]));
      return () => {
        release();
        forget();
      };
    } catch (error) {
      forget();
      if (error instanceof LineFull || (waited.aborted && !signal.aborted)) throw tooMany();
      throw error;
    }
  }
}

function tooMany(): CodedError {
  const message = `too many transfers with links like this one are open; retry in ${RETRY_AFTER_SECONDS} s`;
  return new CodedError('too_many_connections', message, { retryAfterSeconds: RETRY_AFTER_SECONDS });
}
