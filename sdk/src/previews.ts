// Preview links of a sandbox.
import type { Calls } from './calls/calls.ts';
import type { CreatePreviewData, Preview } from './generated/raw/index.ts';
import type { CallOptions } from './transport/transport.ts';

export type { Preview };
/** Port, audience and lifetime of a link. */
export type PreviewSpec = CreatePreviewData['body'];

/** Preview links open a port of a sandbox in a browser. */
export class SandboxPreviews {
  readonly #calls: Calls;
  readonly #sandboxId: string;

  /** Constructed by the SDK. */
  constructor(calls: Calls, sandboxId: string) {
    this.#calls = calls;
    this.#sandboxId = sandboxId;
  }

  /** Creates a link, by default for `team`: signed-in members of the org. */
  async create(spec: PreviewSpec, options: CallOptions = {}): Promise<Preview> {
    const { raw, with: set } = this.#calls;
    const whenLost = 'The link may have been made all the same: list the links before you make another.';
    return (
      await raw.createPreview({ path: { sandboxId: this.#sandboxId }, body: spec, ...set({ ...options, whenLost }) })
    ).preview;
  }

  /** Lists active public links, newest first. */
  async list(options: CallOptions = {}): Promise<Preview[]> {
    const { raw, with: set } = this.#calls;
    return (await raw.listPreviews({ path: { sandboxId: this.#sandboxId }, ...set(options) })).previews;
  }

  /** Revokes a public link within seconds. Idempotent. */
  async revoke(previewId: string, options: CallOptions = {}): Promise<Preview> {
    const { raw, with: set } = this.#calls;
    return (await raw.revokePreview({ path: { sandboxId: this.#sandboxId, previewId }, ...set(options) })).preview;
  }
}
