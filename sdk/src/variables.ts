// Environment variables of a sandbox.
import type { Calls } from './calls/calls.ts';
import type { SandboxVariable } from './generated/raw/index.ts';
import type { CallOptions } from './transport/transport.ts';

export type { SandboxVariable };

/**
 * Variables for programs that start in the sandbox from now on, over those of the image and below
 * those of a request. Nobody can read their values back. A change wakes nothing.
 */
export class SandboxVariables {
  readonly #calls: Calls;
  readonly #sandboxId: string;

  /** Constructed by the SDK. */
  constructor(calls: Calls, sandboxId: string) {
    this.#calls = calls;
    this.#sandboxId = sandboxId;
  }

  /** Sets variables beside the others; null removes one. Returns all names. */
  async set(variables: Readonly<Record<string, string | null>>, options: CallOptions = {}): Promise<SandboxVariable[]> {
    const { raw, with: set } = this.#calls;
    const path = { sandboxId: this.#sandboxId };
    return (await raw.updateVariables({ path, body: { variables }, ...set(options) })).variables;
  }

  /** Sets variables and removes all others. Returns all names. */
  async replace(variables: Readonly<Record<string, string>>, options: CallOptions = {}): Promise<SandboxVariable[]> {
    const { raw, with: set } = this.#calls;
    const path = { sandboxId: this.#sandboxId };
    return (await raw.replaceVariables({ path, body: { variables }, ...set(options) })).variables;
  }

  /** Removes a variable. Idempotent. Returns the names that remain. */
  async unset(name: string, options: CallOptions = {}): Promise<SandboxVariable[]> {
    return await this.set({ [name]: null }, options);
  }

  /** Lists names and times in the order of the names. */
  async list(options: CallOptions = {}): Promise<SandboxVariable[]> {
    const { raw, with: set } = this.#calls;
    return (await raw.listVariables({ path: { sandboxId: this.#sandboxId }, ...set(options) })).variables;
  }
}
